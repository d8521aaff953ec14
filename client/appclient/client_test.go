package appclient_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/protocol/app"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClient(t *testing.T) {
	rig := tholetest.New(t)
	addr := rig.Listen("unix://"+filepath.Join(t.TempDir(), "s.sock"), "")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	asked := make(chan *appclient.Request, 1)
	ended := make(chan struct{}, 1)
	c, err := appclient.Dial(ctx, addr, appclient.Options{
		Name: "one", Experimental: true, Extended: true,
		OnRequest: func(r *appclient.Request) { asked <- r },
		OnNotification: func(n appclient.Notification) {
			if n.Method == "turn/completed" {
				ended <- struct{}{}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Server().Thole == nil {
		t.Error("the server did not say that it is thole")
	}
	v, err := c.StartThread(ctx, app.ThreadStartParams{})
	if err != nil {
		t.Fatal(err)
	}
	observer, err := appclient.Dial(ctx, addr, appclient.Options{Name: "observer"})
	if err != nil {
		t.Fatal(err)
	}
	defer observer.Close()
	if _, err := observer.Resume(ctx, app.ThreadResumeParams{ThreadID: v.Thread.ID}); err != nil {
		t.Fatal(err)
	}
	p := app.TurnStartParams{ThreadID: v.Thread.ID, Input: appclient.Text("sim: run true ;; say done")}
	turn, err := c.StartTurnIfIdle(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	r := <-asked
	// The observer has had the request, too, and has not answered it.
	if asks, err := c.Asks(ctx, v.Thread.ID, true); err != nil || len(asks) != 1 {
		t.Errorf("%d asks are pending: %v", len(asks), err)
	}
	var refused *appclient.Error
	if _, err := c.StartTurnIfIdle(ctx, p); !errors.As(err, &refused) || refused.Class != "busy" || refused.Hint == "" {
		t.Errorf("a busy thread: %v", err)
	}
	if err := r.Reply(app.ApprovalAnswer{Decision: []byte(`"accept"`)}); err != nil {
		t.Fatal(err)
	}
	<-ended
	page, err := c.Turns(ctx, app.TurnsListParams{ThreadID: v.Thread.ID})
	if err != nil || len(page.Data) != 1 || page.Data[0].ID != turn.ID || page.Data[0].Status != app.TurnCompleted {
		t.Errorf("turns are %+v: %v", page.Data, err)
	}
	rig.Stop()
	<-c.Done()
	if _, err := c.ReadThread(ctx, v.Thread.ID); !errors.Is(err, appclient.ErrClosed) {
		t.Errorf("a call on an ended connection: %v", err)
	}
}

// A server that speaks faster than the program listens and then goes away: all it
// said is heard, in order, before the end, and no question of it is refused.
func TestNothingIsLostAtTheEnd(t *testing.T) {
	const said = 300
	out, server := io.Pipe()
	in, client := io.Pipe()
	asked := make(chan struct{})
	sent := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(in)
		lines.Scan() // initialize
		fmt.Fprintln(server, `{"id":1,"result":{"userAgent":"x"}}`)
		lines.Scan() // initialized
		go func() {
			for lines.Scan() {
				if strings.Contains(lines.Text(), `"id":"q"`) {
					sent <- lines.Text()
				}
			}
			close(sent)
		}()
		for i := range said {
			fmt.Fprintf(server, "{\"method\":\"n\",\"params\":%d}\n", i)
		}
		fmt.Fprintln(server, `{"id":"q","method":"ask"}`)
		server.Close()
	}()
	heard := 0
	c, err := appclient.Pipe(t.Context(), out, client, appclient.Options{Name: "test",
		OnNotification: func(n appclient.Notification) {
			runtime.Gosched()
			if string(n.Params) != strconv.Itoa(heard) {
				t.Errorf("%s after %d", n.Params, heard)
			}
			heard++
		},
		OnRequest: func(*appclient.Request) { close(asked) },
	})
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	select {
	case <-asked:
	default:
		t.Error("the question was not heard")
	}
	if refused := <-sent; heard != said || refused != "" {
		t.Errorf("%d of %d were heard; the question got %q", heard, said, refused)
	}
}
