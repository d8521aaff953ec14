package executord_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executord"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/terminal/shell"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/testkit/poll"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts an executord in dir; the caller may stop it and serve again.
func serve(t *testing.T, dir string, providers ...provider.Provider) (client *executorclient.Client, stop func()) {
	t.Helper()
	return serveWith(t, dir, shell.Config{}, providers...)
}

func serveWith(t *testing.T, dir string, terminals shell.Config, providers ...provider.Provider) (client *executorclient.Client, stop func()) {
	t.Helper()
	return serveFull(t, dir, func(c *executord.Config) { c.Terminals = terminals }, providers...)
}

func serveFull(t *testing.T, dir string, change func(*executord.Config), providers ...provider.Provider) (client *executorclient.Client, stop func()) {
	t.Helper()
	dirs := executord.Dirs{Workspace: dir + "/workspace", Data: dir + "/data", State: dir + "/state", Auth: dir + "/auth", Home: dir + "/home", Tmp: dir + "/tmp"}
	for _, d := range []string{dirs.Workspace, dirs.Data, dirs.State, dirs.Auth, dirs.Home, dirs.Tmp} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cfg := executord.Config{Dirs: dirs, Token: "secret", Providers: append(providers, testprovider.New())[:1], Logger: slog.New(slog.DiscardHandler)}
	change(&cfg)
	s, err := executord.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	sock := filepath.Join(dir, "d.sock")
	os.Remove(sock)
	ln, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: s.Handler()}
	go srv.Serve(ln)
	client = executorclient.Dial("unix:"+sock, "secret")
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		srv.Close()
		s.Close()
		client.Close()
	}
	t.Cleanup(stop)
	return client, stop
}

func home(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "xd") // short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func newID() thole.TurnID { return thole.NewID[thole.TurnID](time.Now()) }

func request(prompt string) wire.RunRequest {
	return wire.RunRequest{
		Turn: provider.Turn{ID: newID(), Input: thole.Text(prompt)}, For: newID(), Thread: "t", Provider: "test",
		Session: wire.SessionSettings{Settings: event.Settings{Profile: thole.ProfileAsk}},
	}
}

func start(t *testing.T, c *executorclient.Client, req wire.RunRequest) thole.TurnID {
	t.Helper()
	if _, err := c.Run(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return req.Turn.ID
}

// collect reads a run to its end and checks the port's promises on the way.
func collect(t *testing.T, c *executorclient.Client, run thole.TurnID, after uint64, each func(wire.LogEvent)) []wire.LogEvent {
	t.Helper()
	var out []wire.LogEvent
	err := c.Events(t.Context(), run, after, func(batch []wire.LogEvent) error {
		for _, ev := range batch {
			if after++; ev.Cursor != after {
				t.Fatalf("cursor %d, want %d", ev.Cursor, after)
			}
			out = append(out, ev)
			if each != nil {
				each(ev)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, ev := range out {
		if (ev.Event.Kind == event.TurnEnded) != (i == len(out)-1) {
			t.Fatalf("event %d of %d is %s", i+1, len(out), ev.Event.Kind)
		}
	}
	return out
}

func text(events []wire.LogEvent) string {
	var b strings.Builder
	for _, ev := range events {
		if ev.Event.Kind == event.ItemCompleted && ev.Event.Item.Kind == event.ItemMessage {
			b.WriteString(ev.Event.Item.Text)
		}
	}
	return b.String()
}

// An executor rests after its start, and after its turns.
func TestAnIdleExecutorRests(t *testing.T) {
	t.Parallel()
	var rests atomic.Int32
	c, _ := serveFull(t, home(t), func(c *executord.Config) { c.Rest = func() { rests.Add(1) } })
	poll.Until(t, "a rest after the start", func() bool { return rests.Load() == 1 })
	for range 3 {
		collect(t, c, start(t, c, request("sim: say hello")), 0, nil)
	}
	before := rests.Load()
	poll.Until(t, "a rest after the turns", func() bool { return rests.Load() > before })
}

func TestARunIsReadFromAnyCursorAndRepeatsChangeNothing(t *testing.T) {
	c, _ := serve(t, home(t))
	req := request("sim: say hello")
	run := start(t, c, req)
	all := collect(t, c, run, 0, nil)
	if !strings.Contains(text(all), "hello") {
		t.Fatalf("said %q", text(all))
	}
	start(t, c, req) // a repeat
	if again := collect(t, c, run, 0, nil); len(again) != len(all) {
		t.Fatalf("a repeated request ran again: %d events, then %d", len(all), len(again))
	}
	if tail := collect(t, c, run, all[len(all)-2].Cursor, nil); len(tail) != 1 {
		t.Fatalf("tail has %d events", len(tail))
	}
	if err := c.Ack(t.Context(), wire.AckRequest{Run: run, Cursor: all[len(all)-1].Cursor, Forget: true}); err != nil {
		t.Fatal(err)
	}
	if st, err := c.Status(t.Context()); err != nil || len(st.Runs) != 0 {
		t.Fatal(st, err)
	}
}

func TestAskIsAnsweredOnce(t *testing.T) {
	c, _ := serve(t, home(t))
	run := start(t, c, request("sim: ask Which? | red | blue ;; say thanks"))
	events := collect(t, c, run, 0, func(ev wire.LogEvent) {
		if ev.Event.Kind != event.AskRequested {
			return
		}
		st, err := c.Status(t.Context())
		if err != nil || st.Runs[0].State != wire.RunWaiting {
			t.Errorf("status while asking: %+v, %v", st, err)
		}
		reply := wire.ReplyRequest{Run: run, Ask: ev.Event.Ask.ID, Answer: event.Answer{Answers: map[string][]string{ev.Event.Ask.Questions[0].ID: {"blue"}}}}
		if _, err := c.Reply(t.Context(), reply); err != nil {
			t.Error(err)
		}
		if _, err := c.Reply(t.Context(), reply); thole.CodeOf(err) != thole.CodeConflict {
			t.Errorf("second answer: %v", err)
		}
	})
	if end := events[len(events)-1].Event; end.Outcome != thole.OutcomeCompleted {
		t.Fatalf("ended %+v", end)
	}
}

func TestCancelAndSecondTurn(t *testing.T) {
	c, _ := serve(t, home(t))
	run := start(t, c, request("sim: ask Which? | a | b"))
	busy := request("sim: say x")
	events := collect(t, c, run, 0, func(ev wire.LogEvent) {
		if ev.Event.Kind == event.AskRequested {
			if _, err := c.Run(t.Context(), busy); thole.CodeOf(err) != thole.CodeBusy {
				t.Errorf("a second run beside the first: %v", err)
			}
			if _, err := c.Cancel(t.Context(), wire.CancelRequest{Run: run}); err != nil {
				t.Error(err)
			}
		}
	})
	if end := events[len(events)-1].Event; end.Outcome != thole.OutcomeInterrupted {
		t.Fatalf("ended %+v", end)
	}
	if got := text(collect(t, c, start(t, c, busy), 0, nil)); !strings.Contains(got, "x") {
		t.Fatalf("the next turn said %q", got)
	}
}

// A restart loses the provider, never what it said: the run reads as lost, its
// log is whole, and the conversation goes on in another run.
func TestRestartKeepsTheLog(t *testing.T) {
	t.Run("killed", func(t *testing.T) { restart(t, true) })
	t.Run("stopped", func(t *testing.T) { restart(t, false) })
}

func restart(t *testing.T, killed bool) {
	dir := home(t)
	c, stop := serve(t, dir)
	req := request("sim: say before ;; ask Which? | a | b")
	run := start(t, c, req)
	ctx, cancel := context.WithCancel(t.Context())
	var seen []wire.LogEvent
	_ = c.Events(ctx, run, 0, func(batch []wire.LogEvent) error {
		seen = append(seen, batch...)
		if seen[len(seen)-1].Event.Kind == event.AskRequested {
			cancel()
		}
		return nil
	})
	// What a kill leaves: the state directory as it is now.
	if err := os.CopyFS(dir+"/copy", os.DirFS(dir+"/state")); err != nil {
		t.Fatal(err)
	}
	stop()
	if killed {
		os.RemoveAll(dir + "/state")
		if err := os.Rename(dir+"/copy", dir+"/state"); err != nil {
			t.Fatal(err)
		}
	}
	c, _ = serve(t, dir)
	st, err := c.Status(t.Context())
	if err != nil || len(st.Runs) != 1 || st.Runs[0].State != wire.RunLost || st.Runs[0].For != req.For || st.Runs[0].NativeID == "" {
		t.Fatalf("%+v, %v", st, err)
	}
	n := 0
	if err := c.Events(t.Context(), run, 0, func(b []wire.LogEvent) error { n += len(b); return nil }); err != nil || n < len(seen) {
		t.Fatalf("read %d of %d events back: %v", n, len(seen), err)
	}
	next := request("sim: say after")
	next.For, next.Session.Resume = req.For, st.Runs[0].NativeID
	if got := text(collect(t, c, start(t, c, next), 0, nil)); !strings.Contains(got, "after") {
		t.Fatalf("said %q", got)
	}
}

func TestRefusals(t *testing.T) {
	dir := home(t)
	c, _ := serve(t, dir)
	if _, err := executorclient.Dial("unix:"+dir+"/d.sock", "wrong").Status(t.Context()); thole.CodeOf(err) != thole.CodeUnauthorized {
		t.Errorf("wrong token: %v", err)
	}
	bad := request("x")
	bad.Turn.ID = "../../etc"
	if _, err := c.Run(t.Context(), bad); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("bad id: %v", err)
	}
	if err := c.Events(t.Context(), newID(), 0, nil); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("unknown run: %v", err)
	}
	none := request("x")
	none.Provider = "nobody"
	events := collect(t, c, start(t, c, none), 0, nil)
	if end := events[0].Event; end.Outcome != thole.OutcomeFailed || !strings.Contains(end.Error.Message, "nobody") {
		t.Errorf("unknown provider ended %+v", end)
	}
	out := request("sim: say x")
	out.Grant.Config = map[string][]byte{"../../escape": nil}
	if end := collect(t, c, start(t, c, out), 0, nil)[0].Event; end.Outcome != thole.OutcomeFailed {
		t.Errorf("a configuration file outside its directory: %+v", end)
	}
	leak := request("sim: say x")
	leak.Grant.Files = map[string][]byte{"../escape": nil}
	if end := collect(t, c, start(t, c, leak), 0, nil)[0].Event; end.Outcome != thole.OutcomeFailed {
		t.Errorf("a credential file outside its directory: %+v", end)
	}
}

// late is a provider whose session is there only when it is let, whatever became
// of the turn meanwhile.
type late struct {
	provider.Provider
	opening, let chan struct{}
	closed       atomic.Int64
}

type lateSession struct {
	provider.Session
	of *late
}

func (l *late) Open(ctx context.Context, cfg provider.SessionConfig) (provider.Session, error) {
	close(l.opening)
	<-l.let
	s, err := l.Provider.Open(context.WithoutCancel(ctx), cfg)
	return lateSession{s, l}, err
}

func (s lateSession) Close() error {
	s.of.closed.Add(1)
	return s.Session.Close()
}

// slow holds each turn back before its agent begins it.
type slow struct {
	provider.Provider
	reached, let chan struct{}
}

type slowSession struct {
	provider.Session
	of *slow
}

func (p *slow) Open(ctx context.Context, cfg provider.SessionConfig) (provider.Session, error) {
	s, err := p.Provider.Open(ctx, cfg)
	return slowSession{s, p}, err
}

func (s slowSession) Run(ctx context.Context, turn provider.Turn, emit func(event.Event)) error {
	close(s.of.reached)
	<-s.of.let
	return s.Session.Run(ctx, turn, emit)
}

// A stop that meets an open session before its turn has begun is refused, so that it is sent again.
func TestAStopBeforeTheTurnBegins(t *testing.T) {
	p := &slow{Provider: testprovider.New(), reached: make(chan struct{}), let: make(chan struct{})}
	c, _ := serve(t, home(t), p)
	run := start(t, c, request("sim: hang"))
	<-p.reached
	if _, err := c.Cancel(t.Context(), wire.CancelRequest{Run: run}); thole.CodeOf(err) != thole.CodeUnavailable {
		t.Fatalf("a stop of a turn that has not begun: %v", err)
	}
	close(p.let)
	poll.Until(t, "the stop", func() bool {
		_, err := c.Cancel(t.Context(), wire.CancelRequest{Run: run})
		return err == nil
	})
	events := collect(t, c, run, 0, nil)
	if end := events[len(events)-1].Event; end.Outcome != thole.OutcomeInterrupted {
		t.Fatalf("ended %+v", end)
	}
}

// A turn that is stopped while its agent starts leaves no agent behind.
func TestAStopBeforeTheSessionIsOpen(t *testing.T) {
	l := &late{Provider: testprovider.New(), opening: make(chan struct{}), let: make(chan struct{})}
	c, stop := serve(t, home(t), l)
	run := start(t, c, request("sim: say never"))
	<-l.opening
	if _, err := c.Cancel(t.Context(), wire.CancelRequest{Run: run}); err != nil {
		t.Fatal(err)
	}
	close(l.let)
	events := collect(t, c, run, 0, nil)
	if end := events[len(events)-1].Event; end.Outcome != thole.OutcomeInterrupted {
		t.Fatalf("ended %+v", end)
	}
	stop()
	if n := l.closed.Load(); n != 1 {
		t.Errorf("the session was closed %d times", n)
	}
}

// A reader of a run's end may have the run forgotten, and start the next.
func TestARunIsOverWhenItsLogEnds(t *testing.T) {
	c, _ := serve(t, home(t))
	for range 30 {
		run := start(t, c, request("sim: say hi"))
		events := collect(t, c, run, 0, nil)
		if err := c.Ack(t.Context(), wire.AckRequest{Run: run, Cursor: uint64(len(events)), Forget: true}); err != nil {
			t.Fatal(err)
		}
	}
}
