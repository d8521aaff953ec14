package provider_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

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

// What an earlier session was given, or left, is no login of the next one.
func TestPlaceLeavesNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "auth")
	if err := (provider.Grant{Files: map[string][]byte{"auth.json": []byte("login")}}).Place(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "planted", "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (provider.Grant{}).Place(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
