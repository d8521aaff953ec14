package contract

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/stdio"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/test/e2e/home"
)

// ask sends a request on a bare stream and reads up to its answer.
func ask(t *testing.T, ctx context.Context, s jsonrpc.Stream, id int, method, params string) {
	t.Helper()
	if err := s.Write(ctx, fmt.Appendf(nil, `{"id":%d,"method":"%s","params":%s}`, id, method, params)); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := s.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(m), fmt.Sprintf(`"id":%d,`, id)) || strings.HasSuffix(string(m), fmt.Sprintf(`"id":%d}`, id)) {
			return
		}
	}
}

// One thread on the real socket: fifty clients come and go, one over the socket and one
// over standard input and output do not read. What another client does with the thread
// takes no longer for it, and the two read why they were given up.
func TestClientsDoNotHoldEachOtherUp(t *testing.T) {
	h := home.New(t)
	h.Up()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	addr := "unix://" + daemon.Socket(h.Dir)
	asks := make(chan string, 64)
	dial := func(o appclient.Options) *appclient.Client {
		c, err := appclient.Dial(ctx, addr, o)
		if err != nil {
			t.Error(err)
			return nil
		}
		return c
	}
	c := dial(appclient.Options{Name: "driver", Extended: true, OnRequest: func(r *appclient.Request) { asks <- r.Method }})
	if c == nil {
		t.FailNow()
	}
	defer c.Close()
	model := "test/script"
	v, err := c.StartThread(ctx, app.ThreadStartParams{Settings: app.Settings{Model: &model}})
	if err != nil {
		t.Fatal(err)
	}
	id := v.Thread.ID
	ref := `{"threadId":"` + id + `"}`

	socket, err := ws.Dial(ctx, addr, ws.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close("")
	cmd := h.Command("app-server")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	piped := stdio.New(out, in, 0)
	for _, s := range []jsonrpc.Stream{socket, piped} {
		ask(t, ctx, s, 1, "initialize", `{"clientInfo":{"name":"stalled","version":"1"}}`)
		ask(t, ctx, s, 2, "thread/resume", ref)
	}

	quick := func(what string, do func() error) {
		t.Helper()
		from := time.Now()
		if err := do(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if d := time.Since(from); d > time.Second {
			t.Errorf("%s took %s", what, d)
		}
	}
	const rounds = 3
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range rounds {
				j := dial(appclient.Options{Name: "joiner"})
				if j == nil {
					return
				}
				if _, err := j.Resume(ctx, app.ThreadResumeParams{ThreadID: id}); err != nil {
					t.Error(err)
				}
				if err := j.Unsubscribe(ctx, id); err != nil {
					t.Error(err)
				}
				j.Close()
			}
		})
	}
	start := func(script string) app.Turn {
		turn, err := c.StartTurn(ctx, app.TurnStartParams{ThreadID: id, Input: appclient.Text(script)})
		if err != nil {
			t.Fatal(err)
		}
		return turn
	}
	// More than a socket holds, so that the stalled ones are waited for; less than they
	// are given up for.
	start("sim: say " + strings.Join(slices.Repeat([]string{strings.Repeat("y", 70_000)}, 5), " ;; say "))
	idle(t, ctx, c, id)
	for i := range rounds {
		turn := start("sim: run sleep 60")
		<-asks
		list, err := c.Asks(ctx, id, true)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d asks: %v", len(list), err)
		}
		if i == 1 { // it leaves without reading
			if err := socket.Write(ctx, []byte(`{"id":3,"method":"thread/unsubscribe","params":`+ref+`}`)); err != nil {
				t.Fatal(err)
			}
			if err := socket.Write(ctx, []byte(`{"id":4,"method":"thread/resume","params":`+ref+`}`)); err != nil {
				t.Fatal(err)
			}
		}
		quick("name", func() error {
			return c.Call(ctx, "thread/name/set", app.ThreadNameParams{ThreadID: id, Name: fmt.Sprint("name ", i)}, nil)
		})
		quick("answer", func() error {
			_, err := c.Answer(ctx, id, list[0].ID, app.Answer{Decision: "allow"})
			return err
		})
		quick("interrupt", func() error { return c.Interrupt(ctx, id, turn.ID) })
		idle(t, ctx, c, id)
	}
	wg.Wait()

	// More than all buffers hold: both are given up. Then they read.
	for range 4 {
		start("sim: say " + strings.Repeat("y", 700_000))
		idle(t, ctx, c, id)
	}
	for {
		if _, err = socket.Read(ctx); err != nil {
			break
		}
	}
	if !strings.Contains(err.Error(), appserver.ReasonSlow) {
		t.Errorf("over the socket it read %v", err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	_ = in.Close()
	_ = cmd.Wait()
	if !strings.Contains(said.String(), appserver.ReasonSlow) {
		t.Errorf("over standard input and output it was told %q", said.String())
	}
}

// idle waits for the end of the thread's turn.
func idle(t *testing.T, ctx context.Context, c *appclient.Client, id string) {
	t.Helper()
	for {
		th, err := c.ReadThread(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if th.Status.Type != app.StatusActive {
			return
		}
		time.Sleep(20 * time.Millisecond) // polled, as a reader without a subscription does
	}
}
