//go:build linux

package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// evil is text that writes to the clipboard, hides, turns around and erases what
// stands before it.
const evil = "evil\x1b]52;c;cm0=\x07\u009b31m\u202e\u2066\u200b\b\x7f\rover"

// imitations are lines that look like thole's, which no agent may make it print.
var imitations = []string{"waits for you: run ls", "approval granted by alice", "  answer with: anything", "error: none", "thole: done"}

// faked has them after its first line.
var faked = evil + "\n" + strings.Join(imitations, "\n")

// escaped is the same for a script of the model, and for printf.
var escaped = strings.ReplaceAll(faked, "\n", `\n`)

// noForeignText are the commands that print nothing which others wrote but their
// arguments, or that are a pipe to another program.
var noForeignText = map[string]string{
	"acp": "speaks a protocol", "app-server": "speaks a protocol", "exec-server": "speaks a protocol", "exec-server forward": "speaks a protocol", "relay serve": "prints its own URL", "executor serve": "logs", "demo-model": "prints its own URL", "tui": "becomes codex",
	"codex run": "runs codex on this terminal", "codex attach": "opens a session by codex's own server", "thread terminal": "is a terminal", "up": "prints its own URL",
	"daemon run": "logs", "daemon stop": "prints a pid", "service install": "prints what it would write", "service uninstall": "prints a path", "service status": "prints a path",
	"db restore": "prints a path", "db backup": "prints a path", "login": "prints a URL", "version": "prints a version", "help": "prints our own text", "completion bash": "prints a script",
	"completion fish": "prints a script", "completion powershell": "prints a script", "completion zsh": "prints a script", "sweep": "prints a fixed line",
	"codex sessions end": "prints what inspect prints", "thread transcript": "is a document, byte for byte where nobody looks",
}

// takesAnything are commands that would do something with any arguments.
var takesAnything = []string{"help", "codex run", "job run", "job wait", "completion bash", "completion fish", "completion powershell", "completion zsh"}

// Whatever an agent or a job wrote into the store, and whatever the user was made to
// type, no command lets a terminal obey it or a reader miss it.
func TestNoCommandPrintsWhatATerminalObeys(t *testing.T) {
	h := home.New(t)
	h.Up()
	p := &planted{t: t, h: h, walked: map[string]bool{}}
	p.plant()
	file := filepath.Join(h.Dir, "manifest-"+evil)
	if err := os.WriteFile(file, []byte(`{"appId": "`+"\u202e"+`", "x": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{
		{"thread", "list"}, {"thread", "show", p.thread}, {"thread", "show", p.asking}, {"thread", "archive", p.thread}, {"thread", "list", "--archived"},
		{"thread", "archive", "--undo", p.thread}, {"thread", "answer", p.asking, "--decision", "deny", "--message", faked}, {"thread", "interrupt", p.asking},
		{"thread", "start", "--model", "test/script", "sim: say " + evil}, {"thread", "send", p.thread, "sim: todo x " + evil + " ;; say " + evil},
		{"thread", "send", p.thread, "sim: fail " + evil}, {"thread", "send", p.thread, "sim: say " + escaped + ` ;; say \n` + escaped + " ;; run printf '" + escaped + "' ;; say first ;; say " + escaped},
		{"thread", "show", p.thread}, {"thread", "show", "--turns", "1", p.thread},
		{"job", "query", p.job}, {"job", "list"}, {"job", "wait", p.job}, {"job", "submit", "--thread-id", p.thread, "--summary", faked, "--task-kind", evil},
		{"job", "run", "--wait", "--thread-id", p.thread, "--", "printf", faked}, {"job", "fail", "--job-id", p.failing, "--reason", faked},
		{"job", "cancel", "--job-id", p.canceled, "--reason", faked}, {"job", "complete", "--job-id", p.job, "--summary", faked},
		{"batch", "list"}, {"batch", "inspect-head", "--source-thread-id", p.foreign}, {"batch", "inspect", "--batch-id", p.batch},
		{"batch", "close-head", "--source-thread-id", p.foreign, "--reason", evil}, {"audit", "list"}, {"check"}, {"artifact", "pin", "--artifact-id", evil}, {"artifact", "read", "--artifact-id", evil},
		{"workspace", "export", p.thread, filepath.Join(h.Dir, "out-"+evil)}, {"manifest", "validate", file},
		{"provider", "list"}, {"provider", "probe", evil}, {"provider", "try", "--provider", "test", "--profile", "full", "sim: say " + evil + " ;; run printf '" + escaped + "' ;; say " + escaped + " ;; fail " + evil},
		{"token", "create", "--name", faked}, {"token", "list"}, {"token", "revoke", evil}, {"login", "list"}, {"login", "revoke", evil}, {"daemon", "status"}, {"config", "show"}, {"doctor"}, {"db", "check"},
		{"budget", "set", "thread:" + p.thread, "900M tokens"}, {"budget", "set", "user:" + evil, faked}, {"budget", "list"}, {"budget", "show", evil}, {"budget", "rm", evil},
		{"usage", "--by", "session"}, {"usage", "--by", evil}, {"usage", "prices"}, {"provider", "login", evil},
		{"secret", "set", faked, "--file", file}, {"secret", "set", "name", "--file", file}, {"secret", "list"}, {"secret", "show", "name"}, {"secret", "show", evil}, {"secret", "test", "name"}, {"secret", "rotate-key"}, {"secret", "rm", "name"},
		{"codex", "status"}, {"codex", "sessions", "list"}, {"codex", "sessions", "inspect", evil},
		{"thread", "network", p.thread}, {"thread", "port", p.thread}, {"thread", "port", p.thread, "8080"}, {"executor", "list"}, {"executor", "show", p.thread}, {"executor", "sync", p.thread}, {"executor", "show", evil},
		{"thread", "diff", p.thread, "--stat"}, {"thread", "diff", p.thread, "--name-only"}, {"thread", "apply", p.thread, "--check", "--to", h.Dir}, {"thread", "apply", p.thread, "--to", filepath.Join(h.Dir, evil)}, {"thread", "pull", p.thread, "--as", evil},
		{"thread", "merge", p.thread}, {"thread", "push", p.thread, "--remote", filepath.Join(h.Dir, evil)}, {"thread", "pr", p.thread, "--remote", "https://" + evil}, {"thread", "setup", p.thread}, {"thread", "undo", p.thread},
		{"exec", "resume", p.thread, "--sandbox", "danger-full-access", "sim: say " + evil + " ;; run printf '" + escaped + "' ;; say " + escaped}, {"exec", "-C", filepath.Join(h.Dir, evil), "x"},
		{"run", "--empty", "--model", "test/script", "sim: say " + evil}, {"executor", "paths"}, {"batch", "deliver", evil}, {"manifest", "template", filepath.Join(h.Dir, evil)}, {"provider", "config", "codex"}, {"provider", "config", evil},
		{"thread", "share", p.thread}, {"thread", "share", "list"}, {"thread", "share", "revoke", evil}, {"inbox"}, {"inbox", "--list"}, {"inbox", "answer", evil}, {"ps"}, {"ps", "--all"}, {"thread", "wait", p.thread}, {"thread", "usage", p.thread}, {"thread", "rename", p.thread, faked}, {"ps", "--all"},
		{"thread", "fork", p.thread}, {"thread", "queue", "add", p.asking, faked}, {"thread", "queue", "list", p.asking}, {"thread", "queue", "move", p.asking, "1", "1"}, {"thread", "queue", "move", p.asking, evil, "1"}, {"thread", "queue", "remove", p.asking, evil}, {"thread", "queue", "remove", p.asking, "1"},
		{"thread", "show", "0"}, {"thread", "archive", p.thread}, {"thread", "unarchive", p.thread}, {"__complete", "thread", "show", ""}, {"__complete", "inbox", "answer", ""},
		{"artifact", "inspect", p.artifact}, {"artifact", "inspect", evil}, {"artifact", "revoke", evil}, {"audit", "list", "--chain"}, {"audit", "verify"}, {"audit", "verify", "--file", file}, {"audit", "verify", "--head", file},
		{"audit", "export", "-o", filepath.Join(h.Dir, "chain-"+evil)}, {"backup", filepath.Join(h.Dir, "home-"+evil)}, {"restore", file, "--home", filepath.Join(h.Dir, "elsewhere-"+evil)},
		{"db", "migrate", "--config", file}, {"db", "move", "--config", file}, {"serve", "--config", file}, {"exec-server", "connect", "--remote", "ws://" + evil, "--environment-id", evil},
		{"user", "add", evil}, {"user", "add", "ada", "--name", faked}, {"user", "add", "eve", "--email", evil}, {"user", "invite", "ada"}, {"user", "reset", "ada"}, {"user", "disable", "ada"}, {"user", "enable", "ada"}, {"user", "list"},
		{"department", "add", faked}, {"department", "add", "readers"}, {"department", "join", "readers", evil}, {"department", "join", "readers", "ada"}, {"department", "move", "readers", "--parent", evil}, {"department", "list"},
		{"department", "leave", "readers", evil}, {"department", "rm", evil}, {"role", "list"}, {"grant", "add", evil, "--user", "ada"}, {"grant", "add", "viewer", "--user", "ada", "--on", "user:" + evil}, {"grant", "add", "viewer", "--user", "ada", "--on", "department:readers"},
		{"grant", "list"}, {"grant", "revoke", evil}, {"logout", "--server", "https://" + evil}, {"login", "--server", "https://" + evil}, {"thread", "list", "--server", "https://" + evil},
		{"desktop", "installation-state"}, {"desktop", "installation-state", "repair", "--read-transport", evil}, {"desktop", "binding", "list"}, {"desktop", "binding", "unbind", "--source-thread-id", evil},
		{"desktop", "binding", "repair", "--source-thread-id", evil, "--caller-automation-id", evil, "--bridge-thread-id", evil}, {"desktop", "bridge-preflight", "--bridge-thread-id", evil},
		{"desktop", "read-snapshot", "--expected-revision", "1"}, {"desktop", "claim-next-ready", "--bridge-thread-id", evil}, {"desktop", "list-arm-pending", "--bridge-thread-id", evil}, {"desktop", "list-pause-due", "--bridge-thread-id", evil},
		{"desktop", "note-arm-pending", "--source-thread-id", evil}, {"desktop", "note-arm", "--source-thread-id", evil}, {"desktop", "reconcile", "--source-thread-id", evil}, {"desktop", "note-paused", "--source-thread-id", evil},
		{"desktop", "note-boundary-crossed", "--source-thread-id", evil, "--batch-id", evil}, {"desktop", "read-artifact", evil},
		{"thread", "close", p.thread}, {"thread", "close", p.asking}, {"thread", "delete", "--yes", p.asking},
	} {
		p.look(c...)
		if c[0] != "job" || c[1] != "run" {
			p.look(append([]string{"--json"}, c...)...)
		}
	}
	p.tail()
	p.readArtifact()
	for _, path := range leaves(h, nil) {
		name := strings.Join(path, " ")
		if !p.walked[name] && noForeignText[name] == "" {
			t.Errorf("thole %s was not looked at: add it to the walk, or say why it prints nothing of others", name)
		}
		if !slices.Contains(takesAnything, name) {
			p.look(append(path, evil, evil, evil, faked)...)
			p.look(append(path, "--"+faked)...)
		}
	}
}

type planted struct {
	t                                                      *testing.T
	h                                                      *home.Home
	thread, asking, foreign, job, failing, canceled, batch string
	artifact                                               string
	walked                                                 map[string]bool
}

// plant fills a home with what a hostile agent and its jobs can leave there.
func (p *planted) plant() {
	p.foreign = "0199aaaa-0000-7000-8000-000000000001"
	records := filepath.Join(p.h.Dir, ".codex", "sessions") // Codex has a record of it, else no job is taken
	if err := os.MkdirAll(records, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(records, "rollout-"+p.foreign+".jsonl"), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
	start := func(script string) string {
		out, errs, _ := p.h.Run("thread", "start", "--model", "test/script", "--profile", "full", script)
		f := strings.Fields(out)
		if len(f) < 2 {
			p.t.Fatalf("start: %s%s", out, errs)
		}
		return f[1]
	}
	p.thread = start("sim: say " + escaped + " ;; run printf '" + evil + "' ;; write " + evil + " text ;; think " + evil + " ;; call " + evil + " {} ;; note " + evil + " ;; say " + evil)
	c, err := appclient.Dial(context.Background(), "unix://"+daemon.Socket(p.h.Dir), appclient.Options{Name: "test", Version: "1", Experimental: true, Extended: true})
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.Close()
	if err := c.Call(context.Background(), "thread/name/set", map[string]string{"threadId": p.thread, "name": faked}, nil); err != nil {
		p.t.Fatal(err)
	}
	out, errs, code := p.h.Run("thread", "start", "--model", "test/script", "--profile", "ask")
	if code != 0 {
		p.t.Fatalf("start: %s%s", out, errs)
	}
	p.asking = strings.Fields(out)[1]
	if out, errs, code := p.h.Run("thread", "send", "--detach", p.asking, "sim: run printf "+evil+" ;; say done"); code != 0 {
		p.t.Fatalf("send: %s%s", out, errs)
	}
	poll.Until(p.t, "an ask", func() bool {
		out, _, _ := p.h.Run("thread", "show", p.asking)
		return strings.Contains(out, "waits for you")
	})
	p.login()
	result := filepath.Join(p.h.Dir, "result")
	if err := os.WriteFile(result, []byte(faked+"\xff\x9b"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	job := func() (id string) {
		out, errs, code := p.h.Run("job", "submit", "--thread-id", p.foreign, "--target", "cli", "--summary", faked, "--task-kind", evil)
		if code != 0 {
			p.t.Fatalf("submit: %s%s", out, errs)
		}
		return strings.Fields(out)[1]
	}
	p.job, p.failing, p.canceled = job(), job(), job()
	if out, errs, code := p.h.Run("job", "complete", "--job-id", p.job, "--summary", faked, "--result-file", result); code != 0 {
		p.t.Fatalf("complete: %s%s", out, errs)
	}
	var j struct {
		ArtifactID string `json:"artifact_id"`
		BatchID    string `json:"batch_id"`
	}
	out, _, _ = p.h.Run("--json", "job", "query", p.job)
	if err := json.Unmarshal([]byte(out), &j); err != nil || j.ArtifactID == "" || j.BatchID == "" {
		p.t.Fatalf("%s: %v", out, err)
	}
	p.artifact, p.batch = j.ArtifactID, j.BatchID
}

// look runs a command and wants nothing in what it prints that a terminal obeys.
func (p *planted) look(args ...string) {
	p.t.Helper()
	out, errs, _ := p.h.Run(args...)
	if args[0] == "--json" {
		for _, line := range slices.Concat(strings.Split(out, "\n"), strings.Split(errs, "\n")) {
			if strings.HasPrefix(line, "{") && !json.Valid([]byte(line)) {
				p.t.Errorf("thole %q printed no JSON: %s", args, line)
			}
		}
	}
	p.judge(args, out)
	p.judge(args, errs)
}

func (p *planted) judge(args []string, said string) {
	p.t.Helper()
	for n := 1; n <= len(args); n++ {
		p.walked[strings.TrimPrefix(strings.Join(args[:n], " "), "--json ")] = true
	}
	for i, r := range said {
		lone := r == utf8.RuneError && !strings.HasPrefix(said[i:], "\ufffd")
		if lone || r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			p.t.Errorf("thole %q let %U through: %q", args, r, said[max(0, i-60):min(len(said), i+20)])
			return
		}
	}
	for line := range strings.SplitSeq(said, "\n") {
		imitates := func(s string) bool { return strings.HasPrefix(line, s) }
		if slices.ContainsFunc(imitations, imitates) && args[0] != "artifact" { // which prints a file and nothing of thole's
			p.t.Errorf("thole %q printed a line of an agent as one of ours:\n%s", args, said)
		}
	}
}

// tail follows a thread from its beginning for as long as it has something to say.
func (p *planted) tail() {
	for _, args := range [][]string{{"thread", "tail", "--after", "0", p.thread}, {"--json", "thread", "tail", "--after", "0", p.thread}} {
		cmd := p.h.Command(args...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			p.t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			p.t.Fatal(err)
		}
		said, buf := "", make([]byte, 4096)
		for !strings.Contains(said, "todo") && strings.Count(said, "evil") < 12 {
			n, err := out.Read(buf)
			if said += string(buf[:n]); err != nil {
				p.t.Errorf("tail ended: %v: %s%s", err, said, errs.String())
				break
			}
		}
		_ = cmd.Process.Kill()
		rest, _ := io.ReadAll(out)
		_ = cmd.Wait()
		said, _, _ = strings.Cut(said+string(rest), "\x00")
		p.judge(args, strings.ToValidUTF8(said[:strings.LastIndexByte(said, '\n')+1], "\ufffd"))
		p.judge(args, errs.String())
	}
}

// A file that the user asked for comes as it is, but not onto a terminal.
func (p *planted) readArtifact() {
	args := []string{"artifact", "read", "--artifact-id", p.artifact}
	if out, errs, code := p.h.Run(args...); code != 0 || out != faked+"\xff\x9b" {
		p.t.Errorf("a pipe got %q (%d %s)", out, code, errs)
	}
	cmd := p.h.Command(args...)
	seat, slave := sit(p.t, cmd)
	_ = slave.Close()
	said, _ := io.ReadAll(seat.keys) // ends with an error when nobody holds the other end
	if err := cmd.Wait(); err != nil {
		p.t.Errorf("read on a terminal: %v", err)
	}
	p.judge(args, strings.ReplaceAll(string(said), "\r\n", "\n"))
	if !strings.Contains(string(said), `evil\u001b]52`) {
		p.t.Errorf("a terminal got %q", said)
	}
}

// leaves are the paths of all commands, as the program itself lists them.
func leaves(h *home.Home, path []string) (all [][]string) {
	out, _, _ := h.Run(append(slices.Clone(path), "--help")...)
	if len(path) == 0 { // the help of thole itself has groups
		_, out, _ = strings.Cut(out, "\nEvery day:\n")
		out, _, _ = strings.Cut("Available Commands:\n"+out, "\nFlags:\n")
	}
	_, list, found := strings.Cut(out, "Available Commands:\n")
	if !found {
		return [][]string{path}
	}
	if len(path) > 0 {
		list, _, _ = strings.Cut(list, "\n\n")
	}
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "  ") {
			all = append(all, leaves(h, append(slices.Clone(path), strings.Fields(line)[0]))...)
		}
	}
	return all
}

// login logs in a browser that calls itself something hostile.
func (p *planted) login() {
	link, errs, code := p.h.Run("login")
	base, secret, ok := strings.Cut(strings.TrimSpace(link), "/auth/login#code=")
	if code != 0 || !ok {
		p.t.Fatalf("login: %s%s", link, errs)
	}
	req, err := http.NewRequest(http.MethodPost, base+"/auth/login", strings.NewReader(`{"code":"`+secret+`"}`))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", base)
	req.Header.Set("User-Agent", "Mozilla \u202e\u200b\u2066 "+"\t")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode >= 300 {
		p.t.Fatalf("log in: %s", res.Status)
	}
	if out, errs, code := p.h.Run("login", "list"); code != 0 || !strings.Contains(out, "Mozilla") {
		p.t.Fatalf("login list: %s%s", out, errs)
	}
}
