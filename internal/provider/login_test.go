package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// What is taken from an executor are new tokens, and nothing but them.
func TestOnlyTokensAreKept(t *testing.T) {
	logins := map[string]struct{ path, file, text, token, next string }{
		"codex": {".codex/auth.json", "auth.json",
			`{"OPENAI_API_KEY":null,"tokens":{"id_token":"i","access_token":"T1","refresh_token":"r","account_id":"me"},"last_refresh":"2026-01-01T00:00:00Z"}`, `"T1"`, `"T2"`},
		"claude": {".claude/.credentials.json", ".credentials.json",
			`{"claudeAiOauth":{"accessToken":"T1","refreshToken":"r","expiresAt":1700000000000,"scopes":["user:inference"],"subscriptionType":"max"}}`, `1700000000000`, `1800000000000`},
		"opencode": {".local/share/opencode/auth.json", "auth.json",
			`{"anthropic":{"type":"oauth","refresh":"r","access":"T1","expires":1},"openai":{"type":"api","key":"sk-1"}}`, `"T1"`, `"T2"`},
	}
	for name, login := range logins {
		t.Run(name, func(t *testing.T) {
			home, auth := t.TempDir(), filepath.Join(t.TempDir(), "auth")
			mine := filepath.Join(home, login.path)
			if err := os.MkdirAll(filepath.Dir(mine), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(mine, []byte(login.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var told []error
			l := provider.Login{Home: home, Kept: func(_ string, err error) { told = append(told, err) }}
			given, err := l.For(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			object := strings.TrimSuffix(login.text, "}")
			for what, text := range map[string]string{
				"a field more":       object + `,"more":1}`,
				"a field less":       `{}`,
				"an object for text": strings.Replace(login.text, login.token, `{}`, 1),
				"no token":           strings.Replace(login.text, login.token, `""`, 1),
				"a newline":          strings.Replace(login.text, login.token, `"a\nb"`, 1),
				"two values":         login.text + login.text,
				"no JSON":            "ssh-ed25519 AAAA",
				"a key":              strings.NewReplacer(`"sk-1"`, `"sk-2"`, "null", `"sk-2"`, `"max"`, `"pro"`).Replace(login.text),
			} {
				if err := os.MkdirAll(auth, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(auth, login.file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				told = nil
				if err := l.Keep(name, auth, given); thole.CodeOf(err) != thole.CodeForbidden || len(told) != 1 || told[0] == nil {
					t.Errorf("%s: %v, told %v", what, err, told)
				}
				if got, err := os.ReadFile(mine); err != nil || string(got) != login.text {
					t.Errorf("%s: the login is now %q, %v", what, got, err)
				}
			}
			// A refresh is taken; a name twice, of which parsers choose differently, once.
			text := strings.Replace(object, login.token, login.next, 1) + "}"
			if err := os.WriteFile(filepath.Join(auth, login.file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			told = nil
			if err := l.Keep(name, auth, given); err != nil || len(told) != 1 || told[0] != nil {
				t.Errorf("a refresh: %v, told %v", err, told)
			}
			if got, err := os.ReadFile(mine); err != nil || !strings.Contains(string(got), login.next) || strings.Contains(string(got), login.token) {
				t.Errorf("the refreshed login is %q, %v", got, err)
			}
		})
	}
}

// Credentials are placed over whatever an agent left at their name.
func TestPlaceFollowsNothing(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, make := range map[string]func(string) error{
		"link":   func(p string) error { return os.Symlink(victim, p) },
		"pipe":   func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"folder": func(p string) error { return os.MkdirAll(filepath.Join(p, "x"), 0o700) },
	} {
		path := filepath.Join(dir, what)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if err := (provider.Grant{Files: map[string][]byte{what: []byte("login")}}).Place(dir); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "login" {
			t.Errorf("%s: holds %q, %v", what, got, err)
		}
	}
	if got, _ := os.ReadFile(victim); string(got) != "precious" {
		t.Errorf("written through a link: %q", got)
	}
}

// A link that an agent put in the place of the directory leads no login elsewhere.
func TestPlaceFollowsNoLink(t *testing.T) {
	root := t.TempDir()
	dark, dir := filepath.Join(root, "state"), filepath.Join(root, "auth", "cli")
	for _, d := range []string{dark, filepath.Dir(dir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dark, dir); err != nil {
		t.Fatal(err)
	}
	if err := (provider.Grant{Files: map[string][]byte{"auth.json": []byte("login")}}).Place(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dark, "auth.json")); err == nil {
		t.Error("the login went through the link")
	}
	if got, err := os.ReadFile(filepath.Join(dir, "auth.json")); err != nil || string(got) != "login" {
		t.Errorf("%q, %v", got, err)
	}
}
