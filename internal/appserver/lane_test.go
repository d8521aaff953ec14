package appserver

import (
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/serial"
)

// Requests share a lane when they are about the same thing, and only then.
func TestLaneKeys(t *testing.T) {
	type params struct{ name string }
	name := func(p *params) string { return p.name }
	one, two := &conn{id: 1, actor: thole.Actor{User: "ann"}}, &conn{id: 2, actor: thole.Actor{User: "bob"}}
	same := &conn{id: 3, actor: thole.Actor{User: "ann"}}
	key := func(m *method, c *conn, name string) lane {
		l, _ := m.key(c, &params{name})
		return l
	}
	thread := inThread(&method{}, serial.Exclusive, name)
	path := inPath(&method{}, serial.Exclusive, name)
	process := inProcess(&method{}, serial.Exclusive, name)
	config, account := inConfig(&method{}, serial.Exclusive), inAccount(&method{}, serial.Shared)
	for _, c := range []struct {
		what string
		a, b lane
		same bool
	}{
		{"one thread, two clients", key(thread, one, "t"), key(thread, two, "t"), true},
		{"two threads", key(thread, one, "t"), key(thread, one, "u"), false},
		{"one file under two spellings", key(path, one, "/a//b/../c"), key(path, two, "/a/c"), true},
		{"two files", key(path, one, "/a"), key(path, one, "/b"), false},
		{"one process", key(process, one, "p"), key(process, one, "p"), true},
		{"two clients' processes of one name", key(process, one, "p"), key(process, two, "p"), false},
		{"one user's settings", key(config, one, ""), key(config, same, ""), true},
		{"two users' settings", key(config, one, ""), key(config, two, ""), false},
		{"settings and account", key(config, one, ""), key(account, one, ""), false},
		{"a thread and a file of one name", key(thread, one, "/x"), key(path, one, "/x"), false},
	} {
		if (c.a == c.b) != c.same {
			t.Errorf("%s: %v and %v", c.what, c.a, c.b)
		}
	}
}
