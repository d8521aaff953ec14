package cli

import (
	"os"
	"path/filepath"
	"testing"

	thole "github.com/tholehq/thole"
)

func TestServerURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://Thole.example.org/": "https://thole.example.org", "http://127.0.0.1:7433": "http://127.0.0.1:7433", "http://[::1]:1": "http://[::1]:1", "http://localhost:1": "http://localhost:1",
		"http://thole.example.org": "", "http://192.0.2.1": "", "http://127.0.0.1.example.org": "", "https://u:p@thole.example.org": "", "https://thole.example.org/path": "", "thole.example.org": "", "ftp://localhost": "", "": "",
	} {
		if got, err := serverURL(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// The server is the one that a flag, a variable or the last login names, and none where a home is named.
func TestChoiceOfTheServer(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("THOLE_HOME", "")
	t.Setenv("THOLE_SERVER", "")
	all := &logins{Default: "https://a.example.org", Servers: map[string]*remoteServer{"https://a.example.org": {Token: "a"}, "https://b.example.org": {Token: "b"}}}
	if err := all.write(); err != nil {
		t.Fatal(err)
	}
	chosen := func(e Env) string {
		t.Helper()
		s, err := e.server()
		if err != nil {
			return string(thole.CodeOf(err))
		}
		if s == nil {
			return "home"
		}
		return s.Token
	}
	for want, e := range map[string]Env{"a": {}, "b": {Server: "https://b.example.org", Home: "/x"}, "home": {Home: "/x"}, "unauthorized": {Server: "https://c.example.org"}, "forbidden": {Server: "http://a.example.org"}} {
		if got := chosen(e); got != want {
			t.Errorf("%+v: %s, want %s", e, got, want)
		}
	}
	if got := chosen(Env{Server: localServer}); got != "home" {
		t.Errorf("local: %s", got)
	}
	t.Setenv("THOLE_HOME", dir)
	if got := chosen(Env{}); got != "home" {
		t.Errorf("with THOLE_HOME: %s", got)
	}
	t.Setenv("THOLE_SERVER", "https://b.example.org")
	if got := chosen(Env{}); got != "b" {
		t.Errorf("with THOLE_SERVER: %s", got)
	}
	file := filepath.Join(dir, ".config/thole/servers.json")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := chosen(Env{}); got != "forbidden" {
		t.Errorf("a file that others read: %s", got)
	}
}
