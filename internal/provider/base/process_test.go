package base

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

// A login that was written inside the synced tree is removed and replaces none, and
// the one that was given is found through the link.
func TestKeepOut(t *testing.T) {
	for _, linked := range []bool{false, true} {
		root := t.TempDir()
		auth, inside := filepath.Join(root, "auth"), filepath.Join(root, "data", "cli", "auth.json")
		if err := KeepOut(provider.SessionConfig{Auth: auth}, inside, linked); err != nil { // nothing there yet
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(inside), 0o700); err != nil {
			t.Fatal(err)
		}
		os.Remove(inside)
		if err := (provider.Grant{Files: map[string][]byte{"auth.json": []byte("given")}}).Place(auth); err != nil {
			t.Fatal(err)
		}
		for _, login := range []string{"first", "fresh"} { // of an agent or its CLI
			os.Remove(inside)
			if err := os.WriteFile(inside, []byte(login), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := KeepOut(provider.SessionConfig{Auth: auth}, inside, linked); err != nil {
					t.Fatal(err)
				}
			}
			if raw, _ := os.ReadFile(filepath.Join(auth, "auth.json")); string(raw) != "given" {
				t.Errorf("linked %v: the login is %q", linked, raw)
			}
			info, err := os.Lstat(inside)
			if linked && (err != nil || info.Mode()&os.ModeSymlink == 0) || !linked && !os.IsNotExist(err) {
				t.Errorf("linked %v: inside is %v, %v", linked, info, err)
			}
		}
	}
}
