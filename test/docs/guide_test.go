package docs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// guides are the pages that lead to a result, each with a recording.
func guides(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root, "docs/guide/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range all {
		if filepath.Base(name) != "README.md" {
			out = append(out, name)
		}
	}
	if len(out) < 6 {
		t.Fatalf("only %d guides", len(out))
	}
	return out
}

// guide returns what a page has its reader type, and the result that it states: its last
// block of text.
func guide(t *testing.T, page string) (commands, result []string) {
	t.Helper()
	fenced, _ := blocks(t, page)
	for _, b := range fenced {
		switch {
		case b.lang == "text":
			result = b.lines
		case b.lang == "sh" && b.how == "":
			script := strings.ReplaceAll(strings.Join(b.lines, "\n"), "\\\n", "\\\x00")
			for line := range strings.SplitSeq(script, "\n") {
				if line != "" {
					commands = append(commands, strings.ReplaceAll(line, "\x00", "\n"))
				}
			}
		}
	}
	if len(commands) == 0 || len(result) == 0 {
		t.Fatalf("%s has %d commands and states %d lines", page, len(commands), len(result))
	}
	return commands, result
}

// A reader who types what a guide shows sees the result that it states, with the real agents
// on the scripted model. THOLE_SHOTS=1 records it.
func TestGuides(t *testing.T) {
	for _, page := range guides(t) {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			t.Parallel()
			commands, result := guide(t, page)
			dir, env := guideReader(t, page)
			s := openTerminal(t, dir, env)
			var all []typed
			var output strings.Builder
			for _, command := range commands {
				got := s.types(command)
				all = append(all, got)
				output.WriteString(text(got.output))
			}
			if err := holds(screen(output.String()), result); err != nil {
				t.Fatal(err)
			}
			if os.Getenv("THOLE_SHOTS") != "" {
				record(t, page, all, map[string]string{dir: "/home/you"})
			}
		})
	}
}

// server is the line by which a page has its reader start thole, if it does.
func server(t *testing.T, page string) string {
	t.Helper()
	fenced, _ := blocks(t, page)
	for _, b := range fenced {
		if b.how == "stays" {
			return strings.TrimSpace(b.lines[0])
		}
	}
	return ""
}

// guideReader is a person with a home directory and thole up: as a page says, without any
// agent, or on the home that commands use by themselves, with all of them.
func guideReader(t *testing.T, page string) (dir string, env []string) {
	t.Helper()
	lab.Git(t)
	lab.Bwrap(t)
	h := home.New(t)
	dir, bin := h.Dir, t.TempDir()
	for name, path := range map[string]string{"thole": lab.Thole(t), "jq": lab.JQ(t)} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(page, "editor") {
		acpx(t, bin)
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitconfig"), []byte("[user]\nname = You\nemail = you@example.org\n[init]\ndefaultBranch = main\n[core]\npager = cat\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	env = []string{
		"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "USER=you", "NO_COLOR=1",
		config.Variable("http.listen") + "=127.0.0.1:0",
	}
	if strings.Contains(page, "team-server") {
		env = append(env, "DATABASE="+lab.Postgres(t))
		browser(t, bin)
	}
	if up := server(t, page); up != "" {
		h.Dir = filepath.Join(dir, ".thole-demo")
		stays(t, up+" --no-browser", dir, env)
		return dir, env
	}
	for name, path := range map[string]string{"codex": lab.Codex(t), "claude": lab.Claude(t), "opencode": lab.Opencode(t)} {
		env = append(env, config.Variable("providers."+name)+"="+path)
	}
	h.Dir = filepath.Join(dir, ".thole")
	stays(t, "thole up --demo --no-browser --home ~/.thole", dir, env)
	return dir, env
}

// stays starts a server, waits until it says that it is up, and ends it with the test.
func stays(t *testing.T, line, dir string, env []string) {
	t.Helper()
	cmd := exec.Command("sh", "-euc", "exec "+line)
	cmd.Dir, cmd.Env = dir, env
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	lines, up, read := bufio.NewScanner(r), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		said := false
		for lines.Scan() {
			fmt.Fprintln(&log, lines.Text())
			if !said && strings.Contains(lines.Text(), "thole is up") {
				said = true
				close(up)
			}
		}
	}()
	gone := make(chan struct{})
	go func() { defer close(gone); _ = cmd.Wait(); _ = w.Close() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-gone
		<-read
		if t.Failed() {
			t.Logf("%s:\n%s", line, log.String())
		}
	})
	select {
	case <-up:
	case <-gone:
		t.Fatalf("%s ended", line)
	}
}

// browser puts the reader at a browser: xdg-open fills in the form of the page that a link leads
// to, with a password, and lets a program in whose code it shows.
func browser(t *testing.T, bin string) {
	t.Helper()
	const script = `#!/bin/sh
set -eu
post() { curl -sSf -b "$HOME/.cookies" -c "$HOME/.cookies" -H 'Content-Type: application/json' -H 'Sec-Fetch-Site: same-origin' "$@"; }
base=${1%%/auth/*} code=${1##*code=} who=
case $1 in
*/auth/account*)
	[ -e "$HOME/team.toml" ] && who='"login": "root",'
	post -d "{$who \"code\": \"$code\", \"password\": \"correct horse battery\"}" "$base/auth/account" | jq -r .proof > "$HOME/.proof" ;;
*) post -H "Thole-Proof: $(cat "$HOME/.proof")" -d '{"confirm": true}' "$base/auth/devices/$code" ;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// acpx puts a client of the Agent Client Protocol next to the reader's programs.
func acpx(t *testing.T, bin string) {
	t.Helper()
	node, modules := lab.ACP(t)
	script := "#!/bin/sh\nexec " + node + " " + filepath.Join(modules, "node_modules/acpx/dist/cli.js") + ` "$@"` + "\n"
	if err := os.WriteFile(filepath.Join(bin, "acpx"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}
