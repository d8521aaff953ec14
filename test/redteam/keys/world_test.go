//go:build linux

package keys

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// world is a `thole up` with a home, and a person with a home and an environment in
// which keys are.
type world struct {
	testing.TB
	person, home string // directories
	word         string // is in every key
	env          []string
	base, token  string // of the API

	cmd  *exec.Cmd
	said *lines
	end  func()
}

// lines takes what a process says.
type lines struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }
func (l *lines) Bytes() []byte               { l.mu.Lock(); defer l.mu.Unlock(); return bytes.Clone(l.b.Bytes()) }

// newWorld makes the homes; nothing runs yet.
func newWorld(t testing.TB) *world {
	t.Helper()
	root, err := os.MkdirTemp("", "kw") // short: it holds sockets
	if err != nil {
		t.Fatal(err)
	}
	raw := make([]byte, 8)
	if _, err := rand.Read(raw); err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, person: filepath.Join(root, "p"), home: filepath.Join(root, "h"), word: "qzk7" + hex.EncodeToString(raw), said: &lines{}, end: func() {}}
	for _, dir := range []string{w.person, w.home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	none := filepath.Join(root, "none")
	w.env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + w.person, "THOLE_HOME=" + w.home, "THOLE_EXECUTOR_SWEEP_EVERY=1h", "THOLE_EGRESS_POLICY=gateway",
		"THOLE_PROVIDERS_CODEX=" + none, "THOLE_PROVIDERS_CLAUDE=" + none, "THOLE_PROVIDERS_OPENCODE=" + none,
	}
	t.Cleanup(func() {
		driver := local.New(local.Config{Root: filepath.Join(w.home, "x"), Binary: lab.Thole(t)})
		list, err := driver.List(context.Background())
		if err != nil {
			t.Error(err)
		}
		for _, x := range list {
			if t.Failed() {
				log, _ := os.ReadFile(filepath.Join(w.home, "x", string(x.ID), "own", "executord.log"))
				t.Logf("executor %s: %s", x.ID, last(log))
			}
			if err := driver.Remove(context.Background(), x.ID); err != nil {
				t.Error(err)
			}
		}
		os.RemoveAll(root)
	})
	t.Cleanup(func() {
		w.end()
		if t.Failed() {
			t.Logf("thole up said:\n%s", last(w.said.Bytes()))
		}
	})
	return w
}

func last(text []byte) []byte { return text[max(0, len(text)-6000):] }

// set gives thole variables; a later one counts.
func (w *world) set(vars ...string) { w.env = append(w.env, vars...) }

// write puts a file into a directory of the world.
func (w *world) write(path, text string) string {
	w.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		w.Fatal(err)
	}
	return path
}

// in is the world as a test within another sees it.
func (w *world) in(t testing.TB) *world {
	with := *w
	with.TB = t
	return &with
}

// upstreams leads the routes of every CLI to one model, with a key of env:UPSTREAM_KEY
// or of vault:model.
func (w *world) upstreams(url, key string) {
	w.Helper()
	var text strings.Builder
	for name, more := range map[string][2]string{"claude": {"anthropic", "models = [\"" + modelsim.ClaudeModel + "*\"]"}, "codex": {"openai-responses", ""}, "sim": {"openai-chat", "models = [\"" + modelsim.Model + "\"]"}} {
		fmt.Fprintf(&text, "[[gateway.upstreams]]\nname = %q\ndialect = %q\nbase_url = %q\nkey = %q\n%s\n\n", name, more[0], url+"/v1", key, more[1])
	}
	w.set("UPSTREAM_KEY=" + w.key("", "-env-upstream"))
	w.write(filepath.Join(w.home, "config.toml"), text.String())
}

// agents lets thole find the real CLIs.
func (w *world) agents() {
	w.Helper()
	w.set("THOLE_PROVIDERS_CODEX="+lab.Codex(w), "THOLE_PROVIDERS_CLAUDE="+lab.Claude(w), "THOLE_PROVIDERS_OPENCODE="+lab.Opencode(w))
}

// key is one key of a place.
func (w *world) key(prefix, place string) string { return prefix + w.word + place }

// jwt is a token of an identity service that ends in a year, and a key.
func (w *world) jwt(place string) string {
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			w.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	claims := map[string]any{
		"exp": time.Now().Add(365 * 24 * time.Hour).Unix(), "email": "person@example.org",
		"https://api.openai.com/auth": map[string]any{"chatgpt_account_id": "account-1", "chatgpt_plan_type": "pro", "chatgpt_user_id": "user-1"},
	}
	return part(map[string]any{"alg": "RS256", "typ": "JWT"}) + "." + part(claims) + "." + w.word + place
}

// begin starts thole.
func (w *world) begin() {
	w.Helper()
	cmd := exec.Command(lab.Thole(w), "up", "--no-browser", "--json", "--listen", "127.0.0.1:0")
	cmd.Env, cmd.Dir, cmd.Stderr = w.env, w.home, w.said
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	gone := make(chan struct{})
	r := bufio.NewReader(out)
	line, err := r.ReadBytes('}')
	go func() { _, _ = io.Copy(w.said, r); _ = cmd.Wait(); close(gone) }()
	w.cmd = cmd
	w.end = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		<-gone
		kill.Stop()
	})
	var page struct{ Base string }
	if err != nil || json.Unmarshal(line, &page) != nil || page.Base == "" {
		w.Fatalf("thole up printed %q, %v", line, err)
	}
	w.base = page.Base
	if w.token == "" {
		w.token = strings.TrimSpace(w.thole("token", "create", "test"))
	}
}

// crash makes thole say all it would say when it breaks, and waits for its end.
func (w *world) crash() {
	w.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		w.Fatal(err)
	}
	w.end()
}

// thole runs a command of the person's.
func (w *world) thole(args ...string) string {
	w.Helper()
	out, err := w.try(args...)
	if err != nil {
		w.Fatalf("thole %v: %v\n%s", args, err, out)
	}
	return out
}

func (w *world) try(args ...string) (string, error) { return w.feed("", args...) }

// secret puts a value into the vault.
func (w *world) secret(name, value string, flags ...string) {
	w.Helper()
	if out, err := w.feed(value, append([]string{"secret", "set", name, "-"}, flags...)...); err != nil {
		w.Fatalf("secret set %s: %v\n%s", name, err, out)
	}
}

// feed is try with something on standard input.
func (w *world) feed(in string, args ...string) (string, error) {
	cmd := exec.Command(lab.Thole(w), args...)
	cmd.Env, cmd.Dir, cmd.Stdin = w.env, w.home, strings.NewReader(in)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return string(out) + errs.String(), err
	}
	return string(out), nil
}

// call asks the API.
func (w *world) call(method, path string, body, into any) {
	w.Helper()
	var send io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			w.Fatal(err)
		}
		send = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(w.Context(), method, w.base+path, send)
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		w.Fatalf("%s %s: %s %v: %s", method, path, res.Status, err, text)
	}
	switch into := into.(type) {
	case nil:
	case *[]byte:
		*into = text
	default:
		if err := json.Unmarshal(text, into); err != nil {
			w.Fatal(err)
		}
	}
}

// thread is one conversation.
type thread struct {
	*world
	id string
}

func (w *world) thread(provider, model string) *thread {
	w.Helper()
	var got struct{ ID string }
	w.call("POST", "/sessions", map[string]any{"provider": provider, "model": model, "execution_profile": "full"}, &got)
	return &thread{world: w, id: got.ID}
}

// turn is how one stands.
type turn struct {
	ID, Phase, Outcome string
	Error              *struct {
		Code, Message, Hint string
		Status              int
	}
}

func (th *thread) start(prompt string) string {
	th.Helper()
	var got turn
	th.call("POST", "/sessions/"+th.id+"/runs", map[string]any{"text": prompt}, &got)
	return got.ID
}

// settle waits for the end of a turn.
func (th *thread) settle(id string) (got turn) {
	th.Helper()
	poll.Until(th, "the end of turn "+id, func() bool {
		th.call("GET", "/runs/"+id, nil, &got)
		return slices.Contains([]string{"succeeded", "failed", "canceled"}, got.Phase)
	})
	return got
}

// shows waits until the agent runs something in a turn.
func (th *thread) shows(id string) {
	th.Helper()
	poll.Until(th, "a command of turn "+id, func() bool {
		var page struct{ Items []struct{ Kind string } }
		th.call("GET", "/runs/"+id+"/items", nil, &page)
		return slices.ContainsFunc(page.Items, func(it struct{ Kind string }) bool { return it.Kind == "command" })
	})
}

// executor is the thread's, which must be there.
func (th *thread) executor() executor.Info {
	th.Helper()
	list, err := local.New(local.Config{Root: filepath.Join(th.home, "x"), Binary: lab.Thole(th)}).List(th.Context())
	if err != nil {
		th.Fatal(err)
	}
	at := slices.IndexFunc(list, func(x executor.Info) bool { return string(x.Thread) == th.id })
	if at < 0 {
		th.Fatalf("thread %s has no executor among %v", th.id, list)
	}
	return list[at]
}

// workspace is the directory of the thread's files on the host.
func (th *thread) workspace() string {
	th.Helper()
	return filepath.Join(th.home, "x", string(th.executor().ID), "workspace")
}

// lay puts a file into the workspace, as one of the agent's.
func (th *thread) lay(name, text string) {
	th.Helper()
	path := filepath.Join(th.workspace(), name)
	above, err := os.Stat(filepath.Dir(path))
	if err != nil {
		th.Fatal(err)
	}
	owner := above.Sys().(*syscall.Stat_t)
	err = os.WriteFile(path+".new", []byte(text), 0o644)
	if err = errors.Join(err, os.Chown(path+".new", int(owner.Uid), int(owner.Gid)), os.Rename(path+".new", path)); err != nil {
		th.Fatal(err)
	}
}

// processes are all of the executor's: those with its mark, what they started, and what
// lives in the same process namespaces.
func (th *thread) processes() (out []int) {
	th.Helper()
	mark := wire.Mark + "=" + string(th.executor().ID)
	type process struct {
		parent int
		space  string
		ours   bool
	}
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		th.Fatal(err)
	}
	all := map[int]*process{}
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		th.Fatal(err)
	}
	for _, name := range names {
		pid, _ := strconv.Atoi(filepath.Base(name))
		stat, err := os.ReadFile(filepath.Join(name, "stat"))
		if err != nil {
			continue
		}
		p := &process{}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		p.parent, _ = strconv.Atoi(fields[1])
		if fields[0] == "Z" {
			continue
		}
		p.space, _ = os.Readlink(filepath.Join(name, "ns/pid"))
		env, _ := os.ReadFile(filepath.Join(name, "environ"))
		p.ours = bytes.Contains(env, []byte(mark))
		all[pid] = p
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			above := all[p.parent]
			if p.ours || above == nil {
				continue
			}
			if above.ours || p.space != "" && p.space != own && slices.ContainsFunc(values(all), func(o *process) bool { return o.ours && o.space == p.space }) {
				p.ours, grown = true, true
			}
		}
	}
	for pid, p := range all {
		if p.ours {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

func values[K comparable, V any](m map[K]V) (out []V) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// shell is a prompt that lets the agent run a script, given as text that no search finds.
func shell(script, say string) string {
	return fmt.Sprintf("sim: run echo %s | base64 -d | sh ;; say %s", base64.StdEncoding.EncodeToString([]byte(script)), say)
}

func decode(t testing.TB, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}
