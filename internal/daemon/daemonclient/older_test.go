package daemonclient

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/version"
)

// A command that is newer than a thole up hears so; with one of the same version, or with
// a daemon, which it replaces by itself, it does not.
func TestOlderOwner(t *testing.T) {
	mine := version.Version
	version.Version = "0.4.0"
	defer func() { version.Version = mine }()
	for _, c := range []struct {
		role, version string
		said          bool
	}{{"up", "0.3.9", true}, {"up", "0.4.0", false}, {"up", "0.5.0", false}, {"up", "0.1.0-dev", false}, {"daemon", "0.4.0", false}} {
		home, err := os.MkdirTemp("", "th")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(home)
		ln, err := net.Listen("unix", daemon.Socket(home))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { defer close(done); owner(ln, wire.Status{Role: c.role, Version: c.version, PID: 7}) }()
		var said []wire.Status
		client := &Client{Home: home, NoStart: true, Older: func(st wire.Status) { said = append(said, st) }}
		if err := client.Call(t.Context(), wire.JobList, struct{}{}, nil); err != nil {
			t.Fatal(err)
		}
		ln.Close()
		<-done
		if (len(said) == 1) != c.said || len(said) > 1 || c.said && said[0].Version != c.version {
			t.Errorf("%+v: said %+v", c, said)
		}
	}
}

// owner answers every request of one connection with its status.
func owner(ln net.Listener, st wire.Status) {
	conn, err := ln.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var request struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(lines.Bytes(), &request) != nil || request.ID == nil {
			continue
		}
		result, _ := json.Marshal(st)
		fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", request.ID, result)
	}
}
