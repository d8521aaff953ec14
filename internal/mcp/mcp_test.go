package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/mcp"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/unguarded"
)

var ctx = context.Background()

// rig is a tool server over real threads and jobs.
type rig struct {
	*testing.T
	*mcp.Server
	db      *store.DB
	threads *thread.Machine
	jobs    *delivery.Machine

	mu     sync.Mutex
	asked  []event.Ask
	answer event.Answer // to calls of a client's tools
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, db: storetest.SQLite(t)}
	var err error
	r.threads, err = thread.New(thread.Config{Store: r.db.Threads()})
	r.ok(err)
	r.ok(r.threads.Start(ctx))
	t.Cleanup(func() { _ = r.threads.Close(ctx) })
	r.jobs = delivery.New(delivery.Config{Store: r.db.Delivery(), Limits: delivery.DefaultLimits()})
	r.restart()
	return r
}

// restart makes a server to which every caller is new.
func (r *rig) restart() {
	r.Server = mcp.New(mcp.Config{
		Threads: r.threads, Jobs: r.jobs, Children: r.db.Index().Children, Inside: true,
		Providers: func() []provider.Info {
			return []provider.Info{{Name: "codex", Available: true}, {Name: "claude", Available: true}, {Name: "opencode"}}
		},
		Ask: func(_ context.Context, _ thole.TurnID, a event.Ask) (event.Answer, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.asked = append(r.asked, a)
			if a.Kind == event.AskTool {
				return r.answer, nil
			}
			return event.Answer{Answers: map[string][]string{"q1": {"blue"}}}, nil
		},
	})
}

func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// turn starts a turn of a thread and returns its claim.
func (r *rig) turn(c thread.Create) gateway.Claim {
	r.Helper()
	if c.Owner == (thole.Owner{}) {
		c.Owner = thole.DefaultOwner
	}
	c.Settings.Provider = "codex"
	th, err := r.threads.Create(ctx, thole.SystemActor, c)
	r.ok(err)
	return r.open(th)
}

func (r *rig) open(th fold.Thread) gateway.Claim {
	r.Helper()
	t, err := r.threads.StartTurn(ctx, thole.SystemActor, thread.StartTurn{Thread: th.ID, Input: thole.Text("x")})
	r.ok(err)
	return gateway.Claim{Executor: "x", Thread: th.ID, Turn: t.ID, Owner: th.Owner, Provider: "codex"}
}

// post sends one message as an agent does.
func (r *rig) post(c gateway.Claim, body string) (int, string) {
	w := httptest.NewRecorder()
	r.ServeTools(w, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body)), c)
	return w.Code, w.Body.String()
}

// call calls a tool and returns what it says.
func (r *rig) call(c gateway.Claim, tool, args string) (said string, failed bool) {
	r.Helper()
	status, body := r.post(c, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, args))
	if _, data, ok := strings.Cut(body, "\ndata: "); ok {
		body = data
	}
	var out struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
		Error *struct{ Message string }
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil || status != 200 {
		r.Fatalf("%s %s: %d %s: %v", tool, args, status, body, err)
	}
	if out.Error != nil {
		return out.Error.Message, true
	}
	return out.Result.Content[0].Text, out.Result.IsError
}

// idIn is the first id in a text.
func idIn(r *rig, text string) string {
	r.Helper()
	for _, word := range strings.Fields(text) {
		if thole.ValidUUID(word) {
			return word
		}
	}
	r.Fatalf("no id in %q", text)
	return ""
}

func TestProtocol(t *testing.T) {
	r := newRig(t)
	c := r.turn(thread.Create{})
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{}}}`: `"protocolVersion":"2025-03-26"`,
		`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"9999-01-01"}}`:                                 `"protocolVersion":"2025-06-18"`,
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                                     `"result":{}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`:                               `"thread_send"`,
		`{"jsonrpc":"2.0","id":3,"method":"resources/list"}`:                           `-32601`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"rm"}}`:        `-32602`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":["job_run"]}}`: `-32602`,
	} {
		if status, got := r.post(c, body); status != 200 || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s", body, status, got)
		}
	}
	if status, body := r.post(c, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != 202 || body != "" {
		t.Errorf("a notification: %d %s", status, body)
	}
	w := httptest.NewRecorder()
	if r.ServeTools(w, httptest.NewRequest(http.MethodGet, "/mcp", nil), c); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
}

// What an agent sends is read by exact names, once, and within bounds; nothing else happens.
func TestHostileMessages(t *testing.T) {
	r := newRig(t)
	c := r.turn(thread.Create{})
	for _, body := range []string{
		``, `[]`, `null`, `{`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":"` + strings.Repeat("x", 300<<10) + `"}`,
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"ping"}`, strings.Repeat(`{"a":`, 100_000),
	} {
		if status, got := r.post(c, body); status != 400 {
			t.Errorf("%.60s: %d %s", body, status, got)
		}
	}
	for tool, all := range map[string][]string{
		"job_run":      {`{}`, `{"command":""}`, `{"Command":"ls"}`, `{"command":"ls","user":"root"}`, `{"command":["ls"]}`, `{"command":"ls","timeout_seconds":-1}`, `{"command":"ls","timeout_seconds":99999999999}`, `{"command":"a\u0000b"}`, `{"command":"` + strings.Repeat("x", 40<<10) + `"}`},
		"ask_user":     {`{}`, `{"question":" "}`, `{"question":"q","options":[""]}`, `{"question":"` + strings.Repeat("x", 9<<10) + `"}`, `{"question":"q","options":["` + strings.Repeat(`a","`, 30) + `a"]}`},
		"thread_start": {`{}`, `{"message":""}`, `{"message":"m","profile":"root"}`, `{"message":"m","provider":"opencode"}`, `{"message":"m","provider":"test"}`, `{"message":"m","network":"open"}`},
		"thread_send":  {`{}`, `{"thread_id":"","message":"m"}`, `{"thread_id":"none","message":"m"}`},
		"job_status":   {`{"job_id":"none"}`, `{"all":true}`},
	} {
		for _, args := range all {
			r.restart()
			if said, failed := r.call(c, tool, args); !failed {
				t.Errorf("%s %.60s: %s", tool, args, said)
			}
		}
	}
	jobs, err := r.jobs.Jobs(ctx, thole.LocalActor, delivery.JobFilter{})
	r.ok(err)
	n, err := r.db.Index().Children(ctx, c.Thread)
	if r.ok(err); len(jobs) != 0 || n != 0 || len(r.asked) != 0 {
		t.Errorf("%d jobs, %d threads and %d asks came of it", len(jobs), n, len(r.asked))
	}
}

// A job is the thread's own: its owner's, in its queue, for its box, and no other thread
// sees it.
func TestJobs(t *testing.T) {
	r := newRig(t)
	c, other := r.turn(thread.Create{Settings: event.Settings{Profile: thole.ProfileEdit}}), r.turn(thread.Create{})
	said, failed := r.call(c, "job_run", `{"command":"make test","timeout_seconds":60}`)
	if failed {
		t.Fatal(said)
	}
	id := thole.JobID(idIn(r, said))
	j, _, err := r.jobs.Job(ctx, thole.LocalActor, id)
	r.ok(err)
	if j.Thread != c.Thread || j.Owner != c.Owner || j.Endpoint != "" || j.Command == nil || j.Command.Turn != c.Turn || strings.Join(j.Command.Argv, " ") != "sh -c make test" || j.Command.Timeout.Minutes() != 1 {
		t.Errorf("%+v", j)
	}
	if said, failed := r.call(c, "job_status", `{"job_id":"`+string(id)+`"}`); failed || !strings.Contains(said, "is running") {
		t.Errorf("status: %s", said)
	}
	if said, failed := r.call(other, "job_status", `{"job_id":"`+string(id)+`"}`); failed == unguarded.Build {
		t.Errorf("another thread sees it: %s", said)
	}
	if said, _ := r.call(other, "job_status", `{}`); strings.Contains(said, string(id)) {
		t.Errorf("another thread lists it: %s", said)
	}
	for range 20 {
		said, failed = r.call(c, "job_run", `{"command":"sleep 1"}`)
	}
	if !failed || !strings.Contains(said, "16 jobs") {
		t.Errorf("a twentieth job: %s", said)
	}
	if said, failed := r.call(other, "job_run", `{"command":"ls"}`); failed {
		t.Errorf("another thread pays for it: %s", said)
	}
}

// A turn that plans changes nothing by these tools either, but may ask.
func TestPlan(t *testing.T) {
	r := newRig(t)
	for _, profile := range []thole.Profile{thole.ProfilePlan, "on-request/read-only"} {
		c := r.turn(thread.Create{Settings: event.Settings{Profile: profile}})
		for tool, args := range map[string]string{"job_run": `{"command":"ls"}`, "thread_start": `{"message":"m"}`} {
			if said, failed := r.call(c, tool, args); failed == unguarded.Build {
				t.Errorf("%s in %s: %s", tool, profile, said)
			}
		}
		if said, failed := r.call(c, "ask_user", `{"question":"go on?","options":["yes","no"]}`); failed || said != "The user answered: blue" {
			t.Errorf("ask_user: %s", said)
		}
	}
	if len(r.asked) != 2 || r.asked[0].ID == r.asked[1].ID || r.asked[0].Kind != event.AskInput || len(r.asked[0].Questions[0].Options) != 2 {
		t.Errorf("asked %+v", r.asked)
	}
}

// A thread that an agent starts has its parent, owner, network and at most its profile,
// starts none itself, and the two speak with one another and nobody else.
func TestThreads(t *testing.T) {
	r := newRig(t)
	narrow := &event.NetworkPolicy{Policy: "none"}
	c := r.turn(thread.Create{Settings: event.Settings{Profile: thole.ProfileEdit, Model: "m", Network: narrow}, Files: thole.Source{Kind: thole.SourceBranch, Repo: "/r", Commit: "c", Branch: "thole/x"}})
	said, failed := r.call(c, "thread_start", `{"message":"look","profile":"ask","provider":"claude","model":"opus"}`)
	if failed {
		t.Fatal(said)
	}
	id := thole.ThreadID(idIn(r, said))
	th, err := r.threads.Get(ctx, thole.LocalActor, id)
	r.ok(err)
	if th.Parent != c.Thread || th.Source != thole.ThreadOfAgent || th.Owner != c.Owner || th.Settings.Profile != thole.ProfileAsk || th.Settings.Provider != "claude" ||
		th.Settings.Model != "opus" || !th.Settings.Network.Equal(narrow) || th.Files.Commit != "c" || th.Files.Branch == "thole/x" || !strings.Contains(th.Settings.Instructions, string(c.Thread)) {
		t.Errorf("%+v", th)
	}
	if said, failed := r.call(c, "thread_start", `{"message":"look","profile":"full"}`); failed == unguarded.Build {
		t.Errorf("a child with more rights: %s", said)
	}
	turn, err := r.threads.Turn(ctx, thole.SystemActor, id, th.Open)
	r.ok(err)
	child := gateway.Claim{Executor: "y", Thread: id, Turn: turn.ID, Owner: th.Owner, Provider: "claude"}
	if said, failed := r.call(child, "thread_start", `{"message":"more"}`); !failed {
		t.Errorf("a grandchild: %s", said)
	}
	stranger := r.turn(thread.Create{})
	for from, to := range map[gateway.Claim]thole.ThreadID{child: c.Thread, c: id} {
		if said, failed := r.call(from, "thread_send", fmt.Sprintf(`{"thread_id":%q,"message":"===== thread x =====\nhello"}`, to)); failed {
			t.Errorf("%s to %s: %s", from.Thread, to, said)
		}
	}
	for from, to := range map[gateway.Claim]thole.ThreadID{stranger: c.Thread, child: stranger.Thread} {
		if said, failed := r.call(from, "thread_send", fmt.Sprintf(`{"thread_id":%q,"message":"hello"}`, to)); failed == unguarded.Build {
			t.Errorf("%s to %s: %s", from.Thread, to, said)
		}
	}
	if said, failed := r.call(c, "thread_send", fmt.Sprintf(`{"thread_id":%q,"message":"hello"}`, c.Thread)); failed == unguarded.Build {
		t.Errorf("to itself: %s", said)
	}
	queue, err := r.threads.Queue(ctx, thole.LocalActor, c.Thread)
	r.ok(err)
	if len(queue) == 0 || !strings.Contains(queue[0].Input[0].Text, "which you started, says") || queue[0].Actor.Via != thole.AgentActor.Via {
		t.Errorf("queued %+v", queue)
	}
	for range 10 {
		said, failed = r.call(c, "thread_start", `{"message":"one more"}`)
	}
	if n, err := r.db.Index().Children(ctx, c.Thread); err != nil || n != 8 || !failed {
		t.Errorf("%d children, %v: %s", n, err, said)
	}
}

// A claim whose owner is not the thread's, or whose turn is over, gets nothing, whatever
// let it in.
func TestStaleClaims(t *testing.T) {
	r := newRig(t)
	c := r.turn(thread.Create{})
	for name, change := range map[string]func(*gateway.Claim){
		"another owner":  func(c *gateway.Claim) { c.Owner.User = "somebody" },
		"another thread": func(c *gateway.Claim) { c.Thread = thole.NewID[thole.ThreadID](time.Now()) },
		"another turn":   func(c *gateway.Claim) { c.Turn = thole.NewID[thole.TurnID](time.Now()) },
	} {
		forged := c
		change(&forged)
		if said, failed := r.call(forged, "job_run", `{"command":"ls"}`); !failed {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// A thread that floods the server is refused, and no other is.
func TestFlood(t *testing.T) {
	r := newRig(t)
	c, other := r.turn(thread.Create{}), r.turn(thread.Create{})
	refused := 0
	for range 200 {
		if status, _ := r.post(c, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status == http.StatusTooManyRequests {
			refused++
		}
	}
	if (refused == 0) != unguarded.Build {
		t.Errorf("%d of 200 were refused", refused)
	}
	if status, body := r.post(other, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != 200 {
		t.Errorf("another thread: %d %s", status, body)
	}
}

func FuzzMessages(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_user","arguments":{"question":"q"},"_meta":{"progressToken":7}}}`)
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	f.Fuzz(func(t *testing.T, body string) {
		s := mcp.New(mcp.Config{Threads: nobody{}})
		w := httptest.NewRecorder()
		s.ServeTools(w, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body)), gateway.Claim{Thread: "t", Turn: "u"})
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%q: %d %s", body, w.Code, w.Body)
		}
	})
}

// nobody has no threads.
type nobody struct{ mcp.Threads }

func (nobody) Get(context.Context, thole.Actor, thole.ThreadID) (fold.Thread, error) {
	return fold.Thread{}, thole.Errorf(thole.CodeNotFound, "none")
}

// An agent ends the work at the goal of its own thread, in its own turn, and nothing else.
func TestGoal(t *testing.T) {
	r := newRig(t)
	c := r.turn(thread.Create{})
	if said, failed := r.call(c, "goal_update", `{"status":"complete"}`); !failed || !strings.Contains(said, "this thread has no goal") {
		t.Errorf("without a goal: %s", said)
	}
	_, err := r.threads.SetGoal(ctx, thole.SystemActor, c.Thread, thread.SetGoal{Objective: new("reach it")})
	r.ok(err)
	for _, args := range []string{`{}`, `{"status":"active"}`, `{"status":"paused"}`, `{"status":"complete","objective":"mine"}`, `{"status":"blocked","note":"` + strings.Repeat("x", 5<<10) + `"}`} {
		if said, failed := r.call(c, "goal_update", args); !failed {
			t.Errorf("%.80s: %s", args, said)
		}
	}
	if said, failed := r.call(c, "goal_update", `{"status":"blocked","note":"a key"}`); failed || !strings.Contains(said, "The goal is blocked") {
		t.Errorf("%s", said)
	}
	th, err := r.threads.Get(ctx, thole.SystemActor, c.Thread)
	if r.ok(err); th.Goal.Status != event.GoalBlocked || th.Goal.Objective != "reach it" {
		t.Errorf("%+v", th.Goal)
	}
}
