package cli

import (
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// The program, started as ssh starts a ProxyCommand, reaches what the proxy allows and says what it refuses.
func TestBoxConnect(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, "SSH-2.0-test\n") // the server of ssh speaks first
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	proxy, err := egress.New(egress.Config{Policy: egress.List, Private: []string{echo.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- proxy.Serve(ln) }()
	defer func() { _ = proxy.Close(); <-served }()
	program := lab.Thole(t)
	connect := func(host, port string) (string, string, error) {
		cmd := exec.Command(program, "box", "connect", host, port)
		cmd.Env = []string{"HTTPS_PROXY=http://" + ln.Addr().String()}
		cmd.Stdin = strings.NewReader(strings.Repeat("0\x00\x1b[2J\xff\r9", 100_000))
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		return string(out), errs.String(), err
	}
	host, port, _ := net.SplitHostPort(echo.Addr().String())
	if out, errs, err := connect(host, port); err != nil || out != "SSH-2.0-test\n"+strings.Repeat("0\x00\x1b[2J\xff\r9", 100_000) {
		t.Errorf("allowed: %d bytes, %v, %s", len(out), err, errs)
	}
	if out, errs, err := connect("github.com", "22"); err == nil || out != "" || !strings.Contains(errs, `a person can add "github.com" to egress.names`) {
		t.Errorf("refused: %q, %v, %s", out, err, errs)
	}
}
