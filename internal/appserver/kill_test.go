package appserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/threadtest"
	"github.com/tholehq/thole/internal/transport/inproc"
	"github.com/tholehq/thole/protocol/app"
)

// elsewhere runs turns in places that outlive this process.
type elsewhere struct{}

func (elsewhere) Wake(thole.ThreadID, thole.TurnID)                                       {}
func (elsewhere) Steer(context.Context, thread.TurnRef, []thole.Input, string) error      { return nil }
func (elsewhere) Answer(context.Context, thread.TurnRef, thole.AskID, event.Answer) error { return nil }
func (elsewhere) Interrupt(context.Context, thread.TurnRef) error                         { return nil }
func (elsewhere) Recover(context.Context, fold.Thread, fold.Turn) thread.Fate {
	return thread.FateResume
}

// site is a server with one client and no agent: the work reports for one.
type site struct {
	db     *store.DB
	m      *thread.Machine
	server *appserver.Server
	c      *appclient.Client
	served chan struct{}
	asked  chan *appclient.Request
	notes  chan appclient.Notification
}

func openSite(ctx context.Context, dir string, hook sqldb.Hook) (*site, error) {
	s := &site{served: make(chan struct{}), asked: make(chan *appclient.Request, 16), notes: make(chan appclient.Notification, 256)}
	var err error
	if s.db, err = storetest.OpenAt(ctx, sqldb.Config{Path: filepath.Join(dir, "home", "thole.db"), Hook: hook}); err != nil {
		return nil, err
	}
	if s.m, err = thread.New(thread.Config{Store: threadtest.Unfenced{Store: s.db.Threads()}, Checkpoint: time.Hour}); err != nil {
		return nil, err
	}
	s.m.Attach(elsewhere{})
	if err := s.m.Recover(ctx); err != nil {
		return nil, err
	}
	if s.server, err = appserver.New(appserver.Config{Threads: s.m}); err != nil {
		return nil, err
	}
	a, b := inproc.Pipe()
	go func() {
		defer close(s.served)
		_ = s.server.Serve(ctx, b, thole.LocalActor)
	}()
	s.c, err = appclient.Over(ctx, a, appclient.Options{
		Name: "killed", Experimental: true, Extended: true,
		OnRequest: func(r *appclient.Request) { s.asked <- r }, OnNotification: func(n appclient.Notification) { s.notes <- n },
	})
	return s, err
}

func (s *site) close() {
	s.c.Close()
	<-s.served
	_ = s.m.Close(context.Background())
	_ = s.server.Close(context.Background())
	_ = s.db.Close()
}

// hear waits for a notification.
func (s *site) hear(ctx context.Context, method string) (appclient.Notification, error) {
	for {
		select {
		case n := <-s.notes:
			if n.Method == method {
				return n, nil
			}
		case <-ctx.Done():
			return appclient.Notification{}, fmt.Errorf("no %s: %w", method, ctx.Err())
		}
	}
}

// contractWork acknowledges what a client received, in the order it received it.
func contractWork(w *crash.Work) error {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	s, err := openSite(ctx, w.Dir, w.Hook)
	if err != nil {
		return err
	}
	v, err := s.c.StartThread(ctx, app.ThreadStartParams{})
	if err != nil {
		return err
	}
	id := v.Thread.ID
	w.Ack("thread " + id)
	turn, err := s.c.StartTurn(ctx, app.TurnStartParams{ThreadID: id, Input: appclient.Text("the first")})
	if err != nil {
		return err
	}
	w.Ack("turn " + turn.ID)
	ref := thread.TurnRef{Thread: thole.ThreadID(id), Turn: thole.TurnID(turn.ID)}
	err = s.m.Apply(ctx, ref, []event.Event{
		{ID: "e1", Kind: event.ItemCompleted, Data: event.Data{Item: &event.Item{ID: "i1", Kind: event.ItemMessage, Text: "I have to ask", State: event.StateCompleted}}},
		{ID: "e2", Kind: event.AskRequested, Data: event.Data{Ask: &event.Ask{ID: "a1", Kind: event.AskCommand, Command: "true"}}},
	})
	if err != nil {
		return err
	}
	ask := <-s.asked
	w.Ack("asked " + string(ask.ID()))
	m, err := s.c.Enqueue(ctx, app.QueueAddParams{ThreadID: id, Input: appclient.Text("the second"), ClientUserMessageID: "second"})
	if err != nil {
		return err
	}
	w.Ack("queued " + m.ID)
	if err := ask.Reply(app.ApprovalAnswer{Decision: json.RawMessage(`"accept"`)}); err != nil {
		return err
	}
	if _, err := s.hear(ctx, "serverRequest/resolved"); err != nil {
		return err
	}
	w.Ack("resolved")
	err = s.m.Apply(ctx, ref, []event.Event{{ID: "e3", Kind: event.TurnEnded, Data: provider.Ended{Outcome: thole.OutcomeCompleted}.Data()}})
	if err != nil {
		return err
	}
	if _, err := s.hear(ctx, "turn/completed"); err != nil {
		return err
	}
	w.Ack("completed " + turn.ID)
	n, err := s.hear(ctx, "turn/started") // of the queued message
	if err != nil {
		return err
	}
	var next app.TurnNotification
	if err := json.Unmarshal(n.Params, &next); err != nil {
		return err
	}
	w.Ack("turn " + next.Turn.ID)
	if err := s.c.Interrupt(ctx, id, next.Turn.ID); err != nil {
		return err
	}
	w.Ack("interrupted")
	return nil
}

// A server killed at any durable step has sent its client nothing that the next
// one does not know: threads, turns, queued messages, and asks, which come again
// under their id until a client has answered.
func TestContractSurvivesAKill(t *testing.T) {
	crash.Enumerate(t, contractWork, func(t *testing.T, dir string, acked []string, _ string) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		s, err := openSite(ctx, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		told := func(verb string) string {
			i := slices.IndexFunc(acked, func(a string) bool { return strings.HasPrefix(a+" ", verb+" ") })
			if i < 0 {
				return ""
			}
			_, id, _ := strings.Cut(acked[i], " ")
			return id
		}
		id := told("thread")
		if id == "" {
			return
		}
		v, err := s.c.Resume(ctx, app.ThreadResumeParams{ThreadID: id})
		if err != nil {
			t.Fatal(err)
		}
		turns := map[string]app.Turn{}
		for _, turn := range v.Thread.Turns {
			turns[turn.ID] = turn
		}
		for _, a := range acked {
			verb, what, _ := strings.Cut(a, " ")
			switch verb {
			case "turn":
				if turn, ok := turns[what]; !ok || len(turn.Items) == 0 || turn.Items[0].Type != app.ItemUserMessage {
					t.Errorf("after %v the turn is %+v", acked, turn)
				}
			case "completed":
				if turns[what].Status != app.TurnCompleted {
					t.Errorf("a turn that was told as completed is %s", turns[what].Status)
				}
			case "queued":
				if err := s.hasQueued(ctx, id, turns); err != nil {
					t.Error(err)
				}
			}
		}
		s.checkAsk(ctx, t, id, told("asked"), slices.Contains(acked, "resolved"))
	})
}

// hasQueued: a queued message waits, or its turn has begun.
func (s *site) hasQueued(ctx context.Context, id string, turns map[string]app.Turn) error {
	for _, turn := range turns {
		if c := turn.Items[0].ClientID; c != nil && *c == "second" {
			return nil
		}
	}
	queue, err := s.c.Queue(ctx, id)
	if err == nil && len(queue) != 1 {
		err = errors.New("the queued message is lost")
	}
	return err
}

func (s *site) checkAsk(ctx context.Context, t *testing.T, id, request string, resolved bool) {
	t.Helper()
	asks, err := s.c.Asks(ctx, id, false)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case request == "":
	case len(asks) != 1:
		t.Errorf("the ask is lost: %+v", asks)
	case resolved && (asks[0].State != "answered" || asks[0].Answer.Decision != "allow"):
		t.Errorf("the answered ask is %+v", asks[0])
	case asks[0].State == "pending":
		again := <-s.asked
		if string(again.ID()) != request {
			t.Errorf("the ask came as %s, was %s", again.ID(), request)
		}
		if err := again.Reply(app.ApprovalAnswer{Decision: json.RawMessage(`"decline"`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.hear(ctx, "serverRequest/resolved"); err != nil {
			t.Error(err)
		}
	}
}
