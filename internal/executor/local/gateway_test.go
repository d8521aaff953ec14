package local_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// gateway serves a socket that says which proof a connection came with.
func gateway(t *testing.T, root string) (socket string) {
	t.Helper()
	dir := filepath.Join(root, "gateway")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "g.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				line, _ := in.ReadString('\n')
				req, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				text := req.URL.Path + " of " + line
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
			}()
		}
	}()
	return socket
}

const askGateway = "sim: run curl -s -m 20 $OPENAI_BASE_URL/v1/responses; find /run /home /tmp /workspace -type s; ls -d /run/thole/gateway 2>/dev/null; echo tried"

func through() provider.Grant {
	return provider.Grant{Gateway: true, Env: map[string]string{"OPENAI_BASE_URL": "http://" + provider.GatewayPlace + "/codex"}}
}

// An agent reaches the gateway on a port of its own loopback, with the proof of its
// executor, and sees nothing of the socket. Policy gateway lets it, and it is counted.
func TestAnAgentReachesTheGateway(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := setup(t, lab.Bwrap(t))
		b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), Egress: wire.Egress{Policy: "gateway"}, Gateway: gateway(t, b.root)})
		info := b.start()
		if !info.Gateway {
			t.Error("the executor does not say that it knows the gateway")
		}
		req := b.request(askGateway, thole.ProfileFull)
		req.Grant = through()
		want := "/codex/v1/responses of " + wire.Gateway + wire.GatewayProof(info.Token) + "\ntried\n"
		var counted []string
		c := executorclient.Dial(info.Endpoint, info.Token)
		defer c.Close()
		if got := b.take(info, req); got != want {
			t.Errorf("the agent got %q, want %q", got, want)
		}
		if err := c.Events(t.Context(), req.Turn.ID, 0, func(batch []wire.LogEvent) error {
			for _, ev := range batch {
				for _, n := range ev.Event.Network {
					counted = append(counted, fmt.Sprint(n.Host, " ", n.Verdict, " ", n.Connections))
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if strings.Join(counted, ", ") != "gateway allowed 1" {
			t.Errorf("counted %q", counted)
		}
		req = b.request(askGateway, thole.ProfileFull)
		req.Grant = through()
		req.Session.Network = &event.NetworkPolicy{Policy: "none"}
		if got := b.take(info, req); got != "tried\n" {
			t.Errorf("under none the agent got %q", got)
		}
		// Nobody takes the port from the forwarder, in either box.
		if got := b.run(info, "sim: run python3 -c 'import socket; socket.create_server((\"127.0.0.1\", 3129))' 2>&1 | grep -c 'in use'"); got != "1\n" {
			t.Errorf("an agent that takes the port: %q", got)
		}
	})
}

// Without walls the gateway is on a listener of executord's own, and settings that name
// it are right after each start.
func TestTheGatewayWithoutWalls(t *testing.T) {
	b := setup(t, "")
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Gateway: gateway(t, b.root)})
	for range 2 {
		info := b.start()
		req := b.request("sim: run curl -s -m 20 $OPENAI_BASE_URL; echo $OPENAI_BASE_URL; cat ../data/test/place", thole.ProfileFull)
		req.Grant = through()
		req.Grant.Config = map[string][]byte{"place": []byte("http://" + provider.GatewayPlace + "/codex\n")}
		lines := strings.Split(b.take(info, req), "\n")
		if len(lines) != 4 || lines[0] != "/codex of "+wire.Gateway+wire.GatewayProof(info.Token) || lines[1] != lines[2] || !strings.HasPrefix(lines[1], "http://127.0.0.1:") {
			t.Errorf("the agent got %q", lines)
		}
		if err := b.driver.Stop(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
	}
}
