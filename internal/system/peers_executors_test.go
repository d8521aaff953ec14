package system

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/changes"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/platform/peer"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
)

// nowhere is the driver of a machine without executors.
type nowhere struct{ executor.Driver }

func (nowhere) Inspect(context.Context, thole.ExecutorID) (executor.Info, error) {
	return executor.Info{State: executor.Missing}, nil
}

// pair is a server with executors, there, and one that has none of them, here.
type pair struct {
	there, here *peers
	servers     []roster.Server
}

func newPair(t *testing.T, driver executor.Driver, home http.Handler) *pair {
	t.Helper()
	p := &pair{}
	log := slog.New(slog.DiscardHandler)
	list := func(context.Context) ([]roster.Server, error) { return slices.Clone(p.servers), nil }
	for _, id := range []string{"there", "here"} {
		all, err := peer.New(id, list, log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(all.Close)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p.servers = append(p.servers, roster.Server{ID: id, Place: "machine-" + id + ":/home", Peer: ln.Addr().String(), Certificate: all.Sum(), Alive: true})
		p.there, p.here = p.here, &peers{Peers: all, ln: ln, done: make(chan struct{}), log: log}
	}
	part := p.there.serve(nil, home, driver)
	if err := part.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = part.Stop(context.WithoutCancel(t.Context())) })
	return p
}

// What people ask of a thread's executor is answered at a server that does not have it as at the
// one that has; one that does not answer is not one that does not run.
func TestExecutorsOfOtherServers(t *testing.T) {
	kit := tholetest.New(t)
	p := newPair(t, kit.Executors, http.NotFoundHandler())
	at := func(server string) *executors.Service {
		return executors.New(executors.Config{
			Threads: kit.Threads, Dispatcher: kit.Dispatcher, Rows: kit.Store().Executors(), Queue: kit.Store().Queue(), Driver: nowhere{kit.Executors}, Log: slog.New(slog.DiscardHandler),
			Elsewhere: func(ctx context.Context, row executor.Row) (*executorclient.Client, bool, error) {
				row.Engine = roster.Engine(server)
				return p.here.executor(ctx, row)
			},
		})
	}
	asked, me := at("there"), thole.LocalActor
	th, err := kit.Threads.Create(t.Context(), me, thread.Create{Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := kit.Threads.StartTurn(t.Context(), me, thread.StartTurn{Thread: th.ID, Input: thole.Text("sim: write a.txt one")})
	if err != nil {
		t.Fatal(err)
	}
	poll.Until(t, "the turn's end", func() bool {
		got, err := kit.Threads.Turn(t.Context(), me, th.ID, turn.ID)
		return err == nil && got.Phase.Terminal()
	})
	id, err := asked.Running(t.Context(), th.ID)
	if err != nil || id == "" {
		t.Fatalf("running: %q, %v", id, err)
	}
	if row, err := asked.Ready(t.Context(), th.ID); err != nil || row.ID != id {
		t.Errorf("ready: %+v, %v", row, err)
	}
	if _, err := asked.Inventory(t.Context(), th.ID); err != nil && thole.CodeOf(err) != thole.CodeConflict { // whether the agent is warm is its own matter
		t.Errorf("inventory: %v", err)
	}
	if err := asked.ApplyNetwork(t.Context(), th.ID); err != nil {
		t.Errorf("network: %v", err)
	}
	root, err := kit.Executors.WorkspaceDir(id)
	if err != nil {
		t.Fatal(err)
	}
	names, err := executorclient.Names(t.Context(), func(ctx context.Context, on executorclient.Notify) (*executorclient.Exec, func(), error) {
		return asked.Exec(ctx, me, authz.RunThread, th.ID, false, on)
	}, root, root)
	if err != nil || !slices.ContainsFunc(names, func(n executorclient.Name) bool { return strings.HasSuffix(n.Path, "a.txt") }) {
		t.Errorf("files: %v, %v", names, err)
	}
	if _, err := asked.DialPort(t.Context(), th.ID, id, 80); err == nil || !strings.Contains(err.Error(), "without walls") { // executord's own answer
		t.Errorf("port: %v", err)
	}

	// Neither a dead server nor an unknown one says that nothing runs.
	p.servers[0].Alive = false
	for _, server := range []string{"there", "unknown"} {
		if err := at(server).ApplyNetwork(t.Context(), th.ID); thole.CodeOf(err) != thole.CodeUnavailable {
			t.Errorf("a narrower network at %s server that does not answer: %v", server, err)
		}
	}
	p.servers[0].Alive = true
	if err := kit.Executors.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := asked.Running(t.Context(), th.ID); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("after its end: %v", err)
	}
	// Tokens are given to servers alone, and the home's socket does not have the path.
	res, err := http.Get("http://" + p.servers[0].Peer + executorsPath + string(id))
	if err == nil {
		defer res.Body.Close()
		if res.StatusCode == http.StatusOK {
			t.Error("an executor's token for anybody")
		}
	}
}

// placed says that all threads are on one server.
type placed struct{ server string }

func (p placed) ServerOf(context.Context, thole.ThreadID) (string, bool, error) {
	return p.server, true, nil
}

// A method about the files of a thread is answered where they are, or refused with where that is;
// no method is answered for another server that is not named.
func TestMethodsWherever(t *testing.T) {
	p := newPair(t, nil, http.NotFoundHandler())
	p.here.rows, p.there.rows = placed{"there"}, placed{"there"}
	methods := func(where string) map[string]daemon.Method {
		out := map[string]daemon.Method{}
		for _, name := range slices.Concat(anywhere, onlyHere, []string{executors.MethodTurns}) {
			out[name] = func(_ context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
				if strings.Contains(string(params), "busy") {
					return nil, thole.Errorf(thole.CodeBusy, "a turn runs").WithHint("wait")
				}
				return map[string]string{"at": where, "user": string(actor.User)}, nil
			}
		}
		return out
	}
	p.there.wherever(methods("there"))
	here := p.here.wherever(methods("here"))
	call := func(name, params string) (string, error) {
		v, err := here[name](t.Context(), thole.LocalActor, json.RawMessage(params))
		text, _ := json.Marshal(v)
		return string(text), err
	}
	for _, name := range anywhere {
		for _, params := range []string{`{"thread_id":"t"}`, `{"thread":"t"}`} {
			if got, err := call(name, params); err != nil || got != `{"at":"there","user":"`+string(thole.LocalUser)+`"}` {
				t.Errorf("%s: %s, %v", name, got, err)
			}
		}
		if _, err := call(name, `{"thread_id":"busy"}`); thole.CodeOf(err) != thole.CodeBusy || thole.HintOf(err) != "wait" {
			t.Errorf("%s refused there: %v", name, err)
		}
	}
	for _, name := range onlyHere {
		if _, err := call(name, `{"thread_id":"t"}`); thole.CodeOf(err) != thole.CodeConflict || !strings.Contains(err.Error(), "machine-there:/home") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := call(executors.MethodTurns, `{"thread_id":"t"}`); err != nil || !strings.Contains(got, "here") {
		t.Errorf("a method about rows: %s, %v", got, err)
	}
	var out any
	err := p.here.Ask(t.Context(), p.servers[0], http.MethodPost, methodsPath, threadCall{changes.MethodApply, json.RawMessage(`{}`)}, &out)
	if thole.CodeOf(err) != thole.CodeUnsupported {
		t.Errorf("a method that is not for other servers: %v", err)
	}
	p.here.rows = placed{"here"}
	if got, err := call(changes.MethodApply, `{"thread_id":"t"}`); err != nil || !strings.Contains(got, "here") {
		t.Errorf("what is here: %s, %v", got, err)
	}
	p.here.rows, p.servers[0].Alive = placed{"there"}, false
	if _, err := call(changes.MethodDiff, `{"thread_id":"t"}`); thole.CodeOf(err) != thole.CodeUnavailable {
		t.Errorf("of a server that does not answer: %v", err)
	}
}
