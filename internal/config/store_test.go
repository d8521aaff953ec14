package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
)

func none(string) string { return "" }

func TestStoreURL(t *testing.T) {
	for url, want := range map[string]string{
		"sqlite:":                              "",
		"postgres://thole@db/thole":            "",
		"postgresql:///thole?host=/run&user=u": "",
		"sqlite:///tmp/x":                      "sqlite: alone",
		"mysql://u@h/d":                        "postgres://",
		"postgres:thole":                       "postgres://",
		"postgres://u@h":                       "names no database",
		"postgres://u:hush@h/d":                "store.password_file",
		"postgres://u@h/d?password=hush":       "store.password_file",
		"postgres://u:hush@h:x/d":              "cannot be parsed",
	} {
		_, err := config.Load(t.TempDir(), none, map[string]string{"store.url": url})
		if want == "" && err != nil || want != "" && (thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error()+thole.HintOf(err), "hush") {
			t.Errorf("the password is in %v", err)
		}
	}
}

func TestPasswordOfTheStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("a b&c=d%\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := config.Store{URL: "postgres://u@h/d?sslmode=require", PasswordFile: file}
	if dsn, err := s.DSN(); err != nil || dsn != "postgres://u@h/d?password=a+b%26c%3Dd%25&sslmode=require" {
		t.Errorf("%s, %v", dsn, err)
	}
	if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DSN(); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("an empty file: %v", err)
	}
}

// TestBoundHomesReadTheirFile: commands of a home that was served with a named file read it.
func TestBoundHomesReadTheirFile(t *testing.T) {
	home, file := t.TempDir(), filepath.Join(t.TempDir(), "team.toml")
	if err := os.WriteFile(file, []byte("[log]\nlevel = \"debug\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := config.Bind(home, config.Bound{Store: "id", Config: file}); err != nil {
		t.Fatal(err)
	}
	if c, err := config.Load(home, none, nil); err != nil || c.Log.Level != "debug" || c.NamedFile() != file {
		t.Errorf("%+v, %v", c, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(home, none, nil); err == nil {
		t.Error("a file that is gone was taken for an empty one")
	}
	if err := os.WriteFile(config.BoundFile(home), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(home, none, nil); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("a home bound to nothing: %v", err)
	}
}
