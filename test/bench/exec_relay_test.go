//go:build linux

package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/relay/noise"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/protocol/relay"
)

// shooter runs programs over a stream of messages, whatever carries it.
type shooter struct {
	t testing.TB
	s jsonrpc.Stream
	n int
}

func newShooter(t testing.TB, s jsonrpc.Stream, err error) *shooter {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close("") })
	p := &shooter{t: t, s: s}
	p.send(`{"id":0,"method":"initialize","params":{"clientName":"bench"}}`)
	p.until(`"sessionId"`)
	p.send(`{"method":"initialized"}`)
	return p
}

func (p *shooter) send(text string) {
	if err := p.s.Write(context.Background(), []byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *shooter) until(mark string) {
	for {
		m, err := p.s.Read(context.Background())
		if err != nil {
			p.t.Fatal(err)
		}
		if bytes.Contains(m, []byte(mark)) {
			return
		}
	}
}

func (p *shooter) shoot() {
	p.n++
	p.send(fmt.Sprintf(`{"id":%d,"method":"process/start","params":{"processId":"p%d","argv":%s,"cwd":"file:///","env":{},"tty":false,"arg0":null}}`, p.n, p.n, trueArgv))
	p.until(`"process/closed"`)
}

// TestExecRelay: what it costs that a relay is between the client and the executor.
func TestExecRelay(t *testing.T) {
	thole := lab.Thole(t)
	file := filepath.Join(t.TempDir(), "token")
	url, _ := lab.Launch(t, thole, "relay", "serve", "--tokens", file)
	lab.Launch(t, thole, "exec-server", "--remote", url, "--environment-id", "box", "--credential-file", file)
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dial, err := execclient.Relay{URL: url, EnvironmentID: "box", Token: strings.TrimSpace(string(token))}.Dialer()
	if err != nil {
		t.Fatal(err)
	}
	s, err := dial(t.Context())
	through := newShooter(t, s, err)
	d, err := ws.Dial(t.Context(), launch(t, tholeServer(t)).url, ws.DialOptions{})
	direct := newShooter(t, d, err)
	a, b := inTurns(short(20, 100), 0.5, through.shoot, direct.shoot)
	Case{Name: "exec: one shot through a relay, median, to a direct connection", Unit: "ms", Peer: "the same server over loopback", Promise: 3, Loose: 6, Ours: a, Theirs: b,
		Note: "/usr/bin/true, from sending process/start to process/closed; executor, relay and client are processes of one machine. The relay adds two hops and encryption each way"}.Run(t)
}

// TestExecRelayRecords: what encryption and framing allow, without sockets.
func TestExecRelayRecords(t *testing.T) {
	a, err := noise.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	b, _ := noise.NewIdentity()
	i, first, err := noise.NewInitiator(a, b.Public(), noise.Prologue{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := noise.NewResponder(b, noise.Prologue{}, first)
	if err != nil {
		t.Fatal(err)
	}
	second, _, in, err := r.Accept()
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := i.Finish(second)
	if err != nil {
		t.Fatal(err)
	}
	const piece, stream = 61440, "11111111-2222-4333-8444-555555555555"
	msg := make([]byte, piece)
	var frame, plain []byte
	var seq uint32
	pass := func() float64 {
		size := short(20_000_000, 400_000_000)
		began := time.Now()
		for sent := 0; sent < size; sent += piece {
			frame = relay.AppendData(frame[:0], stream, seq, piece+noise.Overhead)
			at := len(frame)
			frame = append(frame, msg...)
			sealed, err := out.Seal(frame[:at], frame[at:])
			if err != nil {
				t.Fatal(err)
			}
			f, err := relay.Parse(sealed)
			if err != nil {
				t.Fatal(err)
			}
			if plain, err = in.Open(plain[:0], f.Payload); err != nil {
				t.Fatal(err)
			}
			frame = sealed
			seq++
		}
		return float64(size) / 1e6 / time.Since(began).Seconds()
	}
	Case{Name: "exec: records of a relay's stream", Unit: "MB/s", Peer: "the promised rate", Promise: 1, Loose: 0.2, AtLeast: true, Ours: pass, Theirs: func() float64 { return 150 },
		Note: "records of 60 KiB sealed, framed, parsed and opened by one goroutine"}.Run(t)
}
