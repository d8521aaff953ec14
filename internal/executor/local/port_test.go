package local_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// A server that an agent runs is reached from outside its box, on either
// loopback, and nothing else of the box is: not the way out, and not a port without a server.
func TestAPortOfTheBox(t *testing.T) {
	b := setup(t, lab.Bwrap(t))
	b.driver = local.New(local.Config{Root: b.root, Binary: binary, Bwrap: lab.Bwrap(t), Gateway: gateway(t, b.root)})
	info := b.start()
	c := executorclient.Dial(info.Endpoint, info.Token)
	defer c.Close()
	req := b.request("sim: run mkdir -p site; echo of the agent >site/x; cd site; python3 -m http.server 8124 --bind ::1 & cd site; exec python3 -m http.server 8123 --bind 127.0.0.1", thole.ProfileFull)
	if _, err := c.Run(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	for _, port := range []uint16{8123, 8124} {
		var got string
		poll.Until(t, fmt.Sprintf("the server on port %d", port), func() bool { got = visit(t, info, port); return got != "" })
		if got != "of the agent\n" {
			t.Errorf("port %d: %q", port, got)
		}
	}
	for port, want := range map[uint16]thole.Code{8125: thole.CodeConflict, 3128: thole.CodeInvalid, 3129: thole.CodeInvalid} {
		if conn, err := c.DialPort(t.Context(), port); thole.CodeOf(err) != want {
			t.Errorf("port %d: %v %v", port, conn, err)
		}
	}
	if _, err := c.Cancel(t.Context(), wire.CancelRequest{Run: req.Turn.ID, Kill: true}); err != nil {
		t.Error(err)
	}
	stranger := executorclient.Dial(info.Endpoint, "guessed")
	defer stranger.Close()
	if _, err := stranger.DialPort(t.Context(), 8123); thole.CodeOf(err) != thole.CodeUnauthorized {
		t.Errorf("without the token: %v", err)
	}
}

// Without walls a port of the agent's is the machine's, and is not led to.
func TestAPortWithoutWalls(t *testing.T) {
	b := setup(t, "")
	info := b.start()
	c := executorclient.Dial(info.Endpoint, info.Token)
	defer c.Close()
	if _, err := c.DialPort(t.Context(), 8123); thole.CodeOf(err) != thole.CodeUnsupported || !strings.Contains(thole.HintOf(err), "http://localhost:8123") {
		t.Errorf("%v (%s)", err, thole.HintOf(err))
	}
}

// visit gets /x from a port of a box, "" while nobody listens.
func visit(t *testing.T, info executor.Info, port uint16) string {
	t.Helper()
	c := executorclient.Dial(info.Endpoint, info.Token)
	defer c.Close()
	conn, err := c.DialPort(t.Context(), port)
	if thole.CodeOf(err) == thole.CodeConflict {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /x HTTP/1.0\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	line, _ := bufio.NewReader(resp.Body).ReadString('\n')
	return line
}
