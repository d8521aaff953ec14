package base

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

// planted is a session whose agent put something in the place of a name.
type planted struct {
	cfg          provider.SessionConfig
	login        string
	secret, dark string // a file and a directory of the server
}

func plant(t *testing.T) planted {
	t.Helper()
	root := t.TempDir()
	p := planted{secret: filepath.Join(root, "state", "runs.log"), dark: filepath.Join(root, "state")}
	p.cfg = provider.SessionConfig{Dir: filepath.Join(root, "workspace"), Auth: filepath.Join(root, "auth", "cli")}
	p.cfg.Data = filepath.Join(root, "data", "cli")
	p.login = filepath.Join(p.cfg.Data, "auth.json")
	for _, dir := range []string{p.dark, p.cfg.Data, p.cfg.Auth} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(p.secret, []byte("what happened"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// What an agent plants where the server keeps its login and its notes leads the server
// nowhere: no file of its own is written, removed or read, and nothing waits.
func TestAgentsLeadNowhere(t *testing.T) {
	do := func(err error) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, attack := range map[string]func(t *testing.T, p planted){
		"the login's place is a link": func(t *testing.T, p planted) {
			do(os.Symlink(p.secret, filepath.Join(p.cfg.Auth, "auth.json")))(t)
		},
		"the login's directory is a link": func(t *testing.T, p planted) {
			do(os.Remove(p.cfg.Auth))(t)
			do(os.Symlink(p.dark, p.cfg.Auth))(t)
			do(os.Symlink("runs.log", filepath.Join(p.dark, "auth.json")))(t)
		},
		"the data is a link": func(t *testing.T, p planted) {
			do(os.RemoveAll(p.cfg.Data))(t)
			do(os.Symlink(p.dark, p.cfg.Data))(t)
		},
		"the login's place is a pipe": func(t *testing.T, p planted) {
			do(syscall.Mkfifo(filepath.Join(p.cfg.Auth, "auth.json"), 0o600))(t)
		},
		"the login is a pipe": func(t *testing.T, p planted) {
			do(os.Remove(p.login))(t)
			do(syscall.Mkfifo(p.login, 0o600))(t)
		},
		"the note is a link": func(t *testing.T, p planted) {
			do(os.Symlink(p.secret, filepath.Join(p.cfg.Data, "note")))(t)
		},
		"the note is a pipe": func(t *testing.T, p planted) {
			do(syscall.Mkfifo(filepath.Join(p.cfg.Data, "note"), 0o600))(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := plant(t)
			do(os.WriteFile(p.login, []byte("forged"), 0o600))(t)
			attack(t, p)
			if err := KeepOut(p.cfg, p.login, true); err != nil {
				t.Logf("refused: %v", err)
			}
			files, err := OpenFiles(p.cfg, p.cfg.Data)
			do(err)(t)
			defer files.Close()
			if got, err := files.Read("note"); err == nil && string(got) == "what happened" {
				t.Error("a file of the server was read")
			}
			do(files.Write("note", []byte("noted")))(t)
			if got, err := os.ReadFile(p.secret); err != nil || string(got) != "what happened" {
				t.Errorf("the server's file is %q, %v", got, err)
			}
		})
	}
}
