package provider

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
)

func TestLoginsThatAreHandedIn(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	for _, c := range []struct{ provider, value, note string }{
		{"codex", `{"OPENAI_API_KEY":"sk-1"}`, "a login file of codex; it was not tried"},
		{"codex", "sk-1", "a key for codex"},
		{"openai", "sk-1", "a key for openai"},
		{"claude", `{"claudeAiOauth":{"accessToken":"a","refreshToken":"r","expiresAt":1700000001000}}`, "its access token ends 2023-11-14T22:13:21Z and can be renewed"},
		{"claude", `{"claudeAiOauth":{"accessToken":"a","expiresAt":1600000000000}}`, "its access token ended 2020-09-13T12:26:40Z;"},
		{"openai", `{"key":"sk-secret"}`, ""},
		{"codex", `{"OPENAI_API_KEY":"sk-secret"`, ""},
		{"codex", `{"a":"sk-secret","a":"sk-secret"}`, ""},
		{"codex", `{"a":1} sk-secret`, ""},
		{"openai", "sk-secret\n", ""},
		{"openai", "sk secret", ""},
		{"openai", "sk-secret\x00", ""},
	} {
		note, err := LoginNote(c.provider, []byte(c.value), now)
		if c.note == "" {
			if check := CheckLogin(c.provider, []byte(c.value)); thole.CodeOf(check) != thole.CodeInvalid || thole.CodeOf(err) != thole.CodeInvalid || strings.Contains(check.Error()+thole.HintOf(check), "secret") {
				t.Errorf("%s %q: %v, %v", c.provider, c.value, err, check)
			}
			continue
		}
		if err != nil || !strings.Contains(note, c.note) || strings.Contains(note, "sk-1") {
			t.Errorf("%s %q: %q, %v", c.provider, c.value, note, err)
		}
	}
}

// A room gives the CLI none of the user's keys, and what it leaves is read from the room
// alone.
func TestLoginRooms(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rooms")
	room, err := OpenLoginRoom(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := room.Command(context.Background(), "codex", "/bin/codex", []string{"--device-auth"},
		[]string{"PATH=/bin", "HOME=/root", "OPENAI_API_KEY=sk-1", "CODEX_HOME=/root/.codex", "HTTPS_PROXY=http://p", "SSH_AUTH_SOCK=/s", "THOLE_HOME=/t"})
	if err != nil || !slices.Equal(cmd.Args[1:], []string{"login", "--device-auth"}) || !slices.Equal(cmd.Env, []string{"HOME=" + room.dir, "PATH=/bin", "HTTPS_PROXY=http://p"}) {
		t.Errorf("%v %v, %v", cmd.Args, cmd.Env, err)
	}
	if _, err := room.Command(context.Background(), "openai", "x", nil, nil); thole.CodeOf(err) != thole.CodeUnsupported {
		t.Error(err)
	}
	if st, err := os.Stat(room.dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Error(st.Mode(), err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	file := filepath.Join(room.dir, ".codex", "auth.json")
	for name, leave := range map[string]func() error{
		"nothing":     func() error { return nil },
		"a link":      func() error { return os.Symlink(outside, file) },
		"a pipe":      func() error { return syscall.Mkfifo(file, 0o600) },
		"a directory": func() error { return os.Mkdir(file, 0o700) },
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(outside, []byte("of another"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := leave(); err != nil {
			t.Fatal(err)
		}
		if got, err := room.Login("codex"); thole.CodeOf(err) != thole.CodeUnavailable || got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		_ = os.Remove(file)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := room.Login("codex"); err != nil || string(got) != "{}" {
		t.Errorf("%q, %v", got, err)
	}
	// A held room stays; one that nobody holds goes.
	if err := os.MkdirAll(filepath.Join(dir, "room-left", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := SweepLoginRooms(dir); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != filepath.Base(room.dir) {
		t.Errorf("after a sweep: %v", left)
	}
	if err := room.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("after the end: %v", left)
	}
	if err := SweepLoginRooms(filepath.Join(dir, "none")); err != nil {
		t.Error(err)
	}
}
