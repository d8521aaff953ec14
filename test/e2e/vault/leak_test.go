package vault

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tholehq/thole/test/e2e/home"
)

// run runs thole, with something on its standard input, and wants an exit code.
func run(t *testing.T, h *home.Home, code int, in string, args ...string) string {
	t.Helper()
	cmd := h.Command(args...)
	cmd.Stdin = strings.NewReader(in)
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != code {
		t.Fatalf("thole %v: exit code %d, want %d: %s", args, cmd.ProcessState.ExitCode(), code, out)
	}
	return string(out)
}

// forms are how a value may have been written down.
func forms(value string) (out [][]byte) {
	out = append(out, []byte(value), []byte(hex.EncodeToString([]byte(value))))
	for shift := range 3 { // base64 of it at every place in a longer text
		coded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + value))
		out = append(out, []byte(coded[4:len(coded)-4]))
	}
	return out
}

// Planted values are looked for in everything that thole wrote or printed.
func TestSecretsAreNowhere(t *testing.T) {
	var traces bytes.Buffer
	var mu sync.Mutex
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&traces, r.Body)
	}))
	defer collector.Close()
	h := home.New(t)
	h.Vars = []string{"THOLE_LOG_LEVEL=debug", "OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL}
	var printed strings.Builder
	say := func(code int, in string, args ...string) string {
		t.Helper()
		out := run(t, h, code, in, args...)
		printed.WriteString(out)
		return out
	}
	planted := []string{"planted-key-one-0123456789", "planted-login-two-0123456789", "planted-bad-three-0123456789", "planted-next-four-0123456789", "planted-gone-five-0123456789"}
	file := filepath.Join(t.TempDir(), "auth.json")
	if err := os.WriteFile(file, []byte(`{"OPENAI_API_KEY": "`+planted[1]+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	say(0, planted[0]+"\n", "secret", "set", "api", "--provider", "openai", "-")
	say(0, "", "secret", "set", "agent", "--provider", "codex", "--file", file)
	say(2, `{"OPENAI_API_KEY": "`+planted[2]+`", `+planted[2], "secret", "set", "bad", "--provider", "codex", "-")
	say(2, planted[2]+" "+planted[2], "secret", "set", "bad", "--provider", "openai", "-")
	say(4, planted[2], "secret", "set", "api", "--kind", "git", "-")
	say(2, "", "secret", "set", "argument", planted[0])
	say(0, planted[3], "secret", "set", "api", "-")
	say(0, planted[4], "secret", "set", "gone", "-")
	say(0, "", "secret", "test", "api")
	say(0, "", "secret", "test", "agent", "--json")
	say(0, "", "secret", "rm", "gone")
	say(0, "", "secret", "list", "--all", "--json")
	say(0, "", "secret", "show", "api", "--json")
	say(0, "", "secret", "rotate-key")
	say(0, "", "check")
	backup := filepath.Join(h.Dir, "backup.db")
	say(0, "", "db", "backup", backup)
	look := func() (files int) {
		t.Helper()
		err := filepath.WalkDir(h.Dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			files++
			for _, p := range planted {
				for _, form := range forms(p) {
					if bytes.Contains(data, form) {
						t.Errorf("%s holds %s", path, form)
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "thole.db-wal")); err != nil {
		t.Errorf("there is no log of the store to look at: %v", err)
	}
	if n := look(); n < 5 {
		t.Errorf("only %d files were looked at", n)
	}
	say(0, "", "daemon", "stop")
	look()
	mu.Lock()
	defer mu.Unlock()
	for _, p := range planted {
		if strings.Contains(printed.String(), p) || bytes.Contains(traces.Bytes(), []byte(p)) {
			t.Errorf("%s was printed or traced", p)
		}
	}
	// The search finds what is there.
	if err := os.WriteFile(filepath.Join(h.Dir, "leak"), []byte(base64.StdEncoding.EncodeToString([]byte("xx"+planted[0]+"yy"))), 0o600); err != nil {
		t.Fatal(err)
	}
	found := false
	data, _ := os.ReadFile(filepath.Join(h.Dir, "leak"))
	for _, form := range forms(planted[0]) {
		found = found || bytes.Contains(data, form)
	}
	if !found {
		t.Error("the search misses a value that was written in base64")
	}
}

// A backup that is restored on another machine shows its secrets and opens none, until
// the key is brought there too.
func TestRestoreWithoutTheKey(t *testing.T) {
	here, there := home.New(t), home.New(t)
	run(t, here, 0, "the value", "secret", "set", "token", "-")
	backup := filepath.Join(t.TempDir(), "backup.db")
	run(t, here, 0, "", "db", "backup", backup)
	run(t, here, 0, "", "daemon", "stop")

	key := filepath.Join(there.Dir, "vault.key")
	says := func(out string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(out, w) {
				t.Errorf("%q does not say %q", out, w)
			}
		}
	}
	says(run(t, there, 0, "", "db", "restore", backup), "the vault is locked", "put the key file back at "+key)
	says(run(t, there, 0, "", "secret", "list"), "token", "the vault is locked")
	says(run(t, there, 7, "", "secret", "test", "token"), "the vault is locked", "put the key file back")
	says(run(t, there, 7, "x", "secret", "set", "other", "-"), "the vault is locked")
	says(run(t, there, 0, "", "check"), "not checked: the vault is locked", "all rules hold")
	says(run(t, there, 0, "", "token", "create", "ci"), "thole_") // everything else goes on
	data, err := os.ReadFile(filepath.Join(here.Dir, "vault.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	says(run(t, there, 7, "", "secret", "test", "token"), "others can use it")
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	says(run(t, there, 0, "", "secret", "test", "token"), "it opens")
	run(t, there, 0, "", "daemon", "stop")
}
