package executord

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// chatty is an agent that says something short, then what it is given, and goes on
// until it is stopped.
type chatty struct {
	provider.Provider
	provider.Session
	said    chan struct{}
	then    chan string
	stopped chan struct{}
}

func (c *chatty) Open(context.Context, provider.SessionConfig) (provider.Session, error) {
	return c, nil
}
func (c *chatty) NativeID() string { return "n" }
func (c *chatty) Close() error     { return nil }

func (c *chatty) Run(ctx context.Context, turn provider.Turn, emit func(event.Event)) error {
	say := func(id, text string) {
		emit(event.Event{ID: thole.EventID(id), Kind: event.ItemCompleted, Turn: turn.ID, Data: event.Data{Item: &event.Item{ID: thole.ItemID(id), Kind: event.ItemMessage, Text: text}}})
	}
	say("1", "short")
	close(c.said)
	say("2", <-c.then)
	select {
	case <-ctx.Done():
		close(c.stopped)
	case <-time.After(30 * time.Second):
	}
	say("3", "nobody hears this")
	emit(event.Event{ID: "4", Kind: event.TurnEnded, Turn: turn.ID, Data: provider.Ended{Outcome: thole.OutcomeInterrupted}.Data()})
	return nil
}

// An agent whose words cannot be recorded any more is stopped; the turn says why
// where it still can, and otherwise its log ends without an end. In both cases the
// run is over and can be forgotten.
func TestAnAgentStopsWhenItsLogFails(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fail  func(*run)
		text  string
		ended bool
	}{
		{"too large", func(*run) {}, strings.Repeat("x", 33<<20), true},
		{"does not write", func(r *run) { _ = r.log.Close() }, "lost", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			agent := &chatty{Provider: testprovider.New(), said: make(chan struct{}), then: make(chan string), stopped: make(chan struct{})}
			s, err := New(Config{Dirs: Dirs{Workspace: dir, Data: dir, State: dir, Auth: dir, Home: dir, Tmp: dir}, Token: "secret", Providers: []provider.Provider{agent}, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			id := thole.NewID[thole.TurnID](time.Now())
			if _, err := s.run(t.Context(), wire.RunRequest{Turn: provider.Turn{ID: id}, For: id, Thread: "t", Provider: "test"}); err != nil {
				t.Fatal(err)
			}
			<-agent.said
			r, err := s.runs.find(id)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.runs.forget(r); thole.CodeOf(err) != thole.CodeBusy {
				t.Errorf("forget a run that is going: %v", err)
			}
			tc.fail(r)
			agent.then <- tc.text
			<-r.done
			select {
			case <-agent.stopped:
			default:
				t.Error("the agent went on")
			}
			var end uint64
			poll.Until(t, "the seal, which follows the end", func() (sealed bool) {
				end, sealed = r.log.End()
				return sealed
			})
			if r.snapshot().State != wire.RunEnded {
				t.Errorf("%+v", r.snapshot())
			}
			if tc.ended {
				recs, err := r.log.Read(t.Context(), end-1)
				if err != nil || !strings.Contains(string(recs[0].Data), "could not be recorded") || !strings.Contains(string(recs[0].Data), string(thole.OutcomeFailed)) {
					t.Errorf("the last event is %.300s, %v", recs[0].Data, err)
				}
			} else if _, err := r.log.Read(t.Context(), end); !errors.Is(err, io.EOF) {
				t.Errorf("the log ends with %v", err)
			}
			if err := s.runs.forget(r); err != nil {
				t.Errorf("forget: %v", err)
			}
			if again, err := openRuns(s.runs.dir); err != nil || len(again.by) != 0 {
				t.Errorf("a new life finds %v, %v", again.by, err)
			}
			if _, err := s.ack(t.Context(), wire.AckRequest{Run: id, Forget: true}); thole.CodeOf(err) != thole.CodeNotFound {
				t.Errorf("forget it again: %v", err)
			}
		})
	}
}
