//go:build linux

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRemoteRefusals: each says what is missing and changes nothing.
func TestRemoteRefusals(t *testing.T) {
	t.Setenv(relayTokenVariable, "")
	t.Setenv("THOLE_HOME", t.TempDir()+"/home")
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	token := file("token", "a-token-of-some-length\n", 0o600)
	open := file("open", "a-token-of-some-length\n", 0o644)
	two := file("two", "one two\n", 0o600)
	key := file("key", "not a key", 0o600)
	remote := "exec-server --remote http://127.0.0.1:1 --credential-file " + token + " "
	for _, c := range []struct {
		args, in string
		code     int
		says     string
	}{
		{remote, "", 2, "--environment-id"},
		{remote + "--environment-id a/b", "", 2, "environment id"},
		{remote + "--environment-id box --listen ws://127.0.0.1:0", "", 2, "--listen"},
		{remote + "--environment-id box --ws-auth none", "", 2, "--ws-auth"},
		{remote + "--environment-id box", "", 7, "register"}, // nobody answers
		{remote + "--environment-id box --remote-transport direct", "", 7, "Noise"},
		{remote + "--environment-id box --aws-sigv4", "", 7, "Noise"},
		{remote + "--environment-id box --allow-harness zz", "", 2, "fingerprint"},
		{remote + "--environment-id box --identity-file " + key, "", 2, "no identity"},
		{remote + "--environment-id box --identity-file " + open, "", 2, "other users"},
		{"exec-server --remote http://127.0.0.1:1 --environment-id box", "", 2, relayTokenVariable},
		{"exec-server --remote http://127.0.0.1:1 --environment-id box --credential-file " + two, "", 2, "token"},
		{"exec-server --remote http://192.0.2.1 --environment-id box --credential-file " + token, "", 6, "unencrypted"},
		{"exec-server --remote http://127.0.0.1:1 --environment-id box --executor-credential-stdin", "", 2, "standard input"},
		{"exec-server --remote http://127.0.0.1:1 --environment-id box --executor-credential-stdin", `{"version":1,"environment_id":"other","token":"x","expires_at":0}`, 2, "standard input"},
		{"exec-server --remote http://127.0.0.1:1 --environment-id box --executor-credential-stdin", `{"version":1,"environment_id":"box","token":"x","expires_at":1}`, 6, "expired"},
		{"exec-server --environment-id box --ws-auth none", "", 2, "needs --remote"},
		{"exec-server --exit-on-stdin-close --ws-auth none", "", 2, "needs --remote"},
		{"exec-server forward --remote http://127.0.0.1:1 --environment-id box --credential-file " + token, "", 2, "--connect"},
		{"exec-server forward --connect http://127.0.0.1:2 --remote http://127.0.0.1:1 --environment-id box --credential-file " + token, "", 2, "ws://"},
		{"exec-server connect --environment-id box", "", 2, "--remote"},
		{"exec-server connect --remote http://127.0.0.1:1 --environment-id box --executor-key x --credential-file " + token, "", 2, "fingerprint"},
		{"exec-server connect --remote http://127.0.0.1:1 --environment-id box --listen ws://0.0.0.0:0 --credential-file " + token, "", 6, "in the clear"},
		{"relay serve", "", 2, "tokens"},
		{"relay serve --tokens " + open, "", 2, "other users"},
		{"relay serve --listen ws://0.0.0.0:0 --tokens " + token, "", 6, "unencrypted"},
		{"relay serve --tls-cert x --tokens " + token, "", 2, "--tls-key"},
		{"relay serve --listen stdio --tokens " + token, "", 2, "ws://"},
		{"relay serve --public-url relay --tokens " + token, "", 2, "--public-url"},
	} {
		var out, errw bytes.Buffer
		code := Main(strings.Fields(c.args), strings.NewReader(c.in), &out, &errw)
		if code != c.code || !strings.Contains(errw.String(), c.says) || out.Len() > 0 {
			t.Errorf("%s: exit %d, want %d and %q: %s%s", c.args, code, c.code, c.says, out.String(), errw.String())
		}
	}
}

// TestIdentityFile: a key is made once and kept.
func TestIdentityFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	one, err := readIdentity(path)
	if err != nil {
		t.Fatal(err)
	}
	two, err := readIdentity(path)
	if err != nil || one.Public().Fingerprint() != two.Public().Fingerprint() {
		t.Fatalf("another key: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
}
