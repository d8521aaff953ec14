package thread_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

func TestAskPolicies(t *testing.T) {
	yes := &event.Answer{Answers: map[string][]string{"q": {"yes"}}}
	cases := []struct {
		name    string
		policy  thread.Policies
		kind    event.AskKind
		state   event.AskState
		outcome thole.Outcome // of the turn once its agent stopped
		open    bool          // the turn goes on
	}{
		{"approvals wait longer", nil, event.AskCommand, event.AskPending, "", true},
		{"a default reply is given to each question", thread.Policies{event.AskInput: {Wait: time.Minute, OnTimeout: thread.TimeoutDefault, Default: &event.Answer{Message: "yes"}}}, event.AskInput, event.AskAnswered, "", true},
		{"an approval is denied", thread.Policies{event.AskCommand: {Wait: time.Minute, OnTimeout: thread.TimeoutDefault, Default: &event.Answer{Decision: event.DecisionDeny}}}, event.AskCommand, event.AskAnswered, "", true},
		{"questions fail the turn", nil, event.AskInput, event.AskExpired, thole.OutcomeFailed, false},
		{"a default reply goes on", thread.Policies{event.AskInput: {Wait: time.Minute, OnTimeout: thread.TimeoutDefault, Default: yes}}, event.AskInput, event.AskAnswered, "", true},
		{"cancel interrupts", thread.Policies{event.AskInput: {Wait: time.Minute, OnTimeout: thread.TimeoutCancel}}, event.AskInput, event.AskExpired, thole.OutcomeInterrupted, false},
		{"approvals may be given a limit", thread.Policies{event.AskCommand: {Wait: time.Minute, OnTimeout: thread.TimeoutFail}}, event.AskCommand, event.AskExpired, thole.OutcomeFailed, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, storetest.SQLite(t), c.policy)
			id := b.create(thread.Create{}).ID
			_, report := b.turn(id, "x")
			report(asks("a", c.kind))
			b.now = b.now.Add(14 * time.Minute)
			if c.policy == nil {
				if err := b.Sweep(bg); err != nil {
					t.Fatal(err)
				}
				if rec, _ := b.Asks(bg, me, id, true); len(rec) != 1 {
					t.Fatal("the ask did not wait fifteen minutes")
				}
			}
			b.now = b.now.Add(2 * time.Minute)
			for range 2 {
				if err := b.Sweep(bg); err != nil {
					t.Fatal(err)
				}
			}
			rec, err := b.Asks(bg, me, id, false)
			if err != nil || len(rec) != 1 || rec[0].State != c.state {
				t.Fatalf("asks %+v, %v", rec, err)
			}
			if !c.open {
				report(ends(thole.OutcomeInterrupted))
			}
			if turn := b.lastTurn(id); turn.Outcome != c.outcome || c.outcome == thole.OutcomeFailed && turn.Error == nil {
				t.Fatalf("turn %+v", turn)
			}
		})
	}
	for name, p := range map[string]thread.Policies{
		"no reply":   {event.AskInput: {Wait: 1, OnTimeout: thread.TimeoutDefault}},
		"no action":  {event.AskInput: {Wait: 1}},
		"bad action": {event.AskInput: {Wait: 1, OnTimeout: "shrug"}},
		"a yes":      {event.AskCommand: {Wait: 1, OnTimeout: thread.TimeoutDefault, Default: &event.Answer{Decision: event.DecisionAllow}}},
		"negative":   {event.AskInput: {Wait: -1, OnTimeout: thread.TimeoutFail}},
	} {
		if thole.CodeOf(p.Validate()) != thole.CodeInvalid {
			t.Errorf("%s: accepted", name)
		}
	}
}

// An approval that nobody gives in a day fails its turn, and no person is said to
// have answered.
func TestApprovalsExpire(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	id := b.create(thread.Create{}).ID
	_, report := b.turn(id, "x")
	report(asks("a", event.AskFileChange))
	for _, step := range []struct {
		wait  time.Duration
		state event.AskState
	}{{24*time.Hour - time.Second, event.AskPending}, {2 * time.Second, event.AskExpired}} {
		b.now = b.now.Add(step.wait)
		if err := b.Sweep(bg); err != nil {
			t.Fatal(err)
		}
		if rec, err := b.Asks(bg, me, id, false); err != nil || len(rec) != 1 || rec[0].State != step.state || step.state == event.AskExpired && rec[0].Actor != thole.SystemActor {
			t.Fatalf("after %s: %+v, %v", step.wait, rec, err)
		}
	}
}

func TestDeferredAskOutlivesTheMachine(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		b := newBench(t, db, nil)
		id := b.create(thread.Create{}).ID
		turn, report := b.turn(id, "x")
		report(asks("a", event.AskCommand), asks("other", event.AskCommand),
			event.Event{Kind: event.TurnEnded, Data: event.Data{AskID: "a"}})
		b = newBench(t, db, nil)
		if err := b.Recover(bg); err != nil {
			t.Fatal(err)
		}
		th, _ := b.Get(bg, me, id)
		if !th.Status.WaitingOnApproval || th.Open != turn.ID {
			t.Fatalf("thread %+v", th)
		}
		if err := b.Apply(bg, thread.TurnRef{Thread: id, Turn: turn.ID}, []event.Event{{ID: "late", Kind: event.NoteReported}}); thole.CodeOf(err) != thole.CodeConflict {
			t.Fatalf("a report about a parked turn: %v", err)
		}
		long := event.Answer{Decision: event.DecisionAllow, Answers: map[string][]string{"": {strings.Repeat("x", 5<<20)}}}
		if _, err := b.Answer(bg, me, id, "a", long); thole.CodeOf(err) != thole.CodeInvalid {
			t.Fatalf("an answer that does not fit on the way to the agent: %v", err)
		}
		if _, err := b.Answer(bg, me, id, "a", event.Answer{Decision: event.DecisionAllow}); err != nil {
			t.Fatal(err)
		}
		again := b.lastTurn(id)
		if again.Phase != thole.PhaseQueued || again.Reply != "a" || again.Run != 1 || again.Deferred != "" {
			t.Fatalf("turn %+v", again)
		}
		// The next run reports the ask again; it stays answered.
		if err := b.Apply(bg, thread.TurnRef{Thread: id, Turn: turn.ID}, []event.Event{
			{ID: "r1", Kind: event.AskRequested, Data: event.Data{Ask: &event.Ask{ID: "a", Kind: event.AskCommand}}},
			{ID: "r2", Kind: event.AskResolved, Data: event.Data{AskID: "a"}},
			{ID: "r3", Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeCompleted}}}); err != nil {
			t.Fatal(err)
		}
		rec, _ := b.Asks(bg, me, id, false)
		if len(rec) != 2 || b.lastTurn(id).Outcome != thole.OutcomeCompleted {
			t.Fatalf("asks %+v, turn %+v", rec, b.lastTurn(id))
		}
		for _, a := range rec {
			if want := map[thole.AskID]event.AskState{"a": event.AskAnswered, "other": event.AskCanceled}[a.Ask.ID]; a.State != want {
				t.Errorf("ask %s is %s", a.Ask.ID, a.State)
			}
		}
	})
}

// A reader that resumes at an old cursor reports facts of an earlier turn with those
// of the running one. Folded again they would park the running turn on a dead ask.
func TestRepeatedFactsOfAParkedTurn(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	id := b.create(thread.Create{}).ID
	turn, _ := b.turn(id, "one")
	old := []event.Event{
		{ID: "r1", Kind: event.AskRequested, Data: event.Data{Ask: &event.Ask{ID: "a", Kind: event.AskCommand}, AskID: "a"}},
		{ID: "r2", Kind: event.TurnEnded, Data: event.Data{AskID: "a"}},
	}
	if err := b.Apply(bg, thread.TurnRef{Thread: id, Turn: turn.ID}, old); err != nil {
		t.Fatal(err)
	}
	if err := b.Interrupt(bg, me, id, turn.ID); err != nil {
		t.Fatal(err)
	}
	turn, _ = b.turn(id, "two")
	ref := thread.TurnRef{Thread: id, Turn: turn.ID}
	fresh := event.Event{ID: "r3", Kind: event.UsageUpdated, Data: event.Data{Usage: &thole.Usage{Input: 1}}}
	if err := b.Apply(bg, ref, []event.Event{fresh}); err != nil {
		t.Fatal(err)
	}
	before, _ := b.Get(bg, me, id)
	if err := b.Apply(bg, ref, append(old, fresh)); err != nil {
		t.Fatal(err)
	}
	if after, _ := b.Get(bg, me, id); after.Seq != before.Seq || after.Status.WaitingOnApproval {
		t.Fatalf("repeating known facts moved the thread from %d to %d: %+v", before.Seq, after.Seq, after.Status)
	}
}

func TestQueuePausesAfterAnInterrupt(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	id := b.create(thread.Create{}).ID
	enqueue := func(text string) {
		if _, err := b.Enqueue(bg, me, thread.Enqueue{Thread: id, Input: thole.Text(text), Start: true}); err != nil {
			t.Fatal(err)
		}
	}
	turn, report := b.turn(id, "x")
	enqueue("one")
	if err := b.Interrupt(bg, me, id, turn.ID); err != nil {
		t.Fatal(err)
	}
	if th, _ := b.Get(bg, me, id); th.Open != "" {
		t.Fatal("a queued turn was not ended at once by its interrupt")
	}
	_ = report
	enqueue("two")
	if q, _ := b.Queue(bg, me, id); len(q) != 2 {
		t.Fatalf("queue %v", q)
	}
	started, err := b.StartQueued(bg, me, id, "")
	if err != nil || started.Input[0].Text != "one" {
		t.Fatalf("started %+v, %v", started, err)
	}
	if err := b.Apply(bg, thread.TurnRef{Thread: id, Turn: started.ID}, []event.Event{{ID: "f", Kind: event.TurnEnded, Data: event.Data{Outcome: thole.OutcomeFailed}}}); err != nil {
		t.Fatal(err)
	}
	if last := b.lastTurn(id); last.Input[0].Text != "two" || last.Phase != thole.PhaseQueued {
		t.Fatalf("the queue did not go on after a failed turn: %+v", last)
	}
}

func TestSteerLeftOverReturnsToTheQueue(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	id := b.create(thread.Create{}).ID
	turn, report := b.turn(id, "x")
	report(event.Event{Kind: event.StepStarted})
	for _, text := range []string{"first", "second", "third"} {
		if _, err := b.Steer(bg, me, thread.Steer{Thread: id, Expected: turn.ID, Input: thole.Text(text), ClientID: text}); err != nil {
			t.Fatal(err)
		}
	}
	report(event.Event{Kind: event.SteerTaken, Data: event.Data{Item: &event.Item{ID: "x", ClientID: "second", Kind: event.ItemUserMessage}}}, said("m", "partial"))
	if err := b.Interrupt(bg, me, id, turn.ID); err != nil {
		t.Fatal(err)
	}
	report(ends(thole.OutcomeInterrupted))
	q, _ := b.Queue(bg, me, id)
	if len(q) != 2 || q[0].Input[0].Text != "first" || q[1].Input[0].Text != "third" {
		t.Fatalf("queue %+v", q)
	}
	items, _ := b.Items(bg, me, id, turn.ID, all)
	if len(items.Items) != 3 || items.Items[1].Item.Content[0].Text != "second" {
		t.Fatalf("items %+v", items.Items)
	}
}

func TestListSearchForkArchive(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		b := newBench(t, open(t), nil)
		var ids []thole.ThreadID
		for i := range 7 {
			th := b.create(thread.Create{Name: fmt.Sprint("thread ", i), Settings: event.Settings{Dir: fmt.Sprint("/d", i%2), Provider: "codex"}, Source: "app"})
			ids = append(ids, th.ID)
		}
		b.create(thread.Create{Ephemeral: true})
		list := func(f thread.Filter) (got []thole.ThreadID) {
			t.Helper()
			for {
				page, err := b.List(bg, me, f)
				if err != nil {
					t.Fatal(err)
				}
				for _, th := range page.Items {
					got = append(got, th.ID)
				}
				if f.Cursor = page.Next; f.Cursor == "" {
					return got
				}
			}
		}
		newest := list(thread.Filter{PageParams: thread.PageParams{Limit: 3, Desc: true}})
		if len(newest) != 7 || newest[0] != ids[6] || newest[6] != ids[0] {
			t.Fatalf("list %v", newest)
		}
		page, _ := b.List(bg, me, thread.Filter{Sort: "created", PageParams: thread.PageParams{Limit: 3}})
		page, _ = b.List(bg, me, thread.Filter{Sort: "created", PageParams: thread.PageParams{Limit: 3, Cursor: page.Next}})
		page, err := b.List(bg, me, thread.Filter{Sort: "created", PageParams: thread.PageParams{Limit: 3, Cursor: page.Back}})
		if err != nil || len(page.Items) != 3 || page.Items[0].ID != ids[0] {
			t.Fatalf("the way back: %+v, %v", page, err)
		}
		if got := list(thread.Filter{Except: ids[:2]}); len(got) != len(ids)-2 || slices.Contains(got, ids[0]) || slices.Contains(got, ids[1]) {
			t.Errorf("without two of %d: %+v", len(ids), got)
		}
		if got := list(thread.Filter{Dirs: []string{"/d1", "/nowhere"}}); len(got) != 3 {
			t.Fatalf("by dir %v", got)
		}
		_, report := b.turn(ids[2], "Find the 100%_Needle!")
		report(said("m", "HAY and Straw"), ends(thole.OutcomeCompleted))
		for _, term := range []string{"100%_needle!", "straw", "thread 2"} {
			if got := list(thread.Filter{Search: term}); len(got) != 1 || got[0] != ids[2] {
				t.Fatalf("search %q: %v", term, got)
			}
		}
		if got := list(thread.Filter{Search: "100__needle"}); len(got) != 0 {
			t.Fatal("a search term is a pattern")
		}

		_, report = b.turn(ids[2], "second turn")
		report(said("m2", "two"), ends(thole.OutcomeCompleted))
		b.turn(ids[2], "still running")
		first, _ := b.Turns(bg, me, ids[2], thread.PageParams{Limit: 1})
		fork, err := b.Fork(bg, me, ids[2], thread.Fork{UpTo: first.Items[0].ID})
		if err != nil || fork.Turns != 1 || fork.ForkedFrom != ids[2] {
			t.Fatalf("fork %+v, %v", fork, err)
		}
		if _, err := b.Events(bg, me, fork.ID, 1, 10); thole.CodeOf(err) != thole.CodeGone {
			t.Fatalf("events of a fork's past: %v", err)
		}
		_, report = b.turn(fork.ID, "on its own")
		report(said("m", "same item id, other thread"), ends(thole.OutcomeCompleted))
		items, _ := b.Items(bg, me, fork.ID, "", all)
		if len(items.Items) != 4 || items.Items[1].Item.Text != "HAY and Straw" { // item ids are unique within a turn only
			t.Fatalf("fork has %+v", items.Items)
		}
		whole, err := b.Fork(bg, me, ids[2], thread.Fork{})
		if err != nil || whole.Turns != 2 || whole.Status.Active {
			t.Fatalf("fork of all %+v, %v", whole, err)
		}

		yes := true
		th, err := b.Update(bg, me, ids[2], thread.Update{Archived: &yes})
		if err != nil || !th.Archived {
			t.Fatal(err)
		}
		if _, err := b.StartTurn(bg, me, thread.StartTurn{Thread: ids[2]}); thole.CodeOf(err) == "" {
			t.Fatal("an archived thread took a turn")
		}
		if got := list(thread.Filter{Archived: true}); len(got) != 1 {
			t.Fatalf("archived %v", got)
		}
		stranger := thole.Actor{User: "00000000-0000-7000-8000-00000000aaaa", Via: "token"}
		if _, err := b.Get(bg, stranger, ids[0]); thole.CodeOf(err) != thole.CodeNotFound {
			t.Fatalf("a stranger got %v", err)
		}
		if _, err := b.Subscribe(bg, stranger, ids[0], thread.SubscribeOptions{}); thole.CodeOf(err) != thole.CodeNotFound {
			t.Fatalf("a stranger got %v", err)
		}
		if got, err := b.List(bg, stranger, thread.Filter{}); err != nil || len(got.Items) != 0 {
			t.Fatalf("a stranger sees %v", got)
		}
		if _, err := b.Get(bg, thole.Actor{}, ids[0]); thole.CodeOf(err) != thole.CodeUnauthorized {
			t.Fatalf("nobody got %v", err)
		}
		b.now = b.now.Add(time.Hour)
		if err := b.Sweep(bg); err != nil {
			t.Fatal(err)
		}
		loaded, _ := b.Loaded(bg, me)
		for _, id := range loaded {
			if th, _ := b.Get(bg, me, id); !th.Status.Active {
				t.Fatalf("idle thread %s is still loaded", id)
			}
		}
	})
}

func TestBadInput(t *testing.T) {
	b := newBench(t, storetest.SQLite(t), nil)
	id := b.create(thread.Create{}).ID
	start := func(p thread.StartTurn) error {
		p.Thread = id
		_, err := b.StartTurn(bg, me, p)
		return err
	}
	cases := map[string]struct {
		err  error
		want thole.Code
	}{
		"bad thread id":   {second(b.Create(bg, me, thread.Create{ID: "NOT-A-UUID"})), thole.CodeInvalid},
		"id in use":       {second(b.Create(bg, me, thread.Create{ID: id})), thole.CodeConflict},
		"foreign owner":   {second(b.Create(bg, me, thread.Create{Owner: thole.Owner{User: "x"}})), thole.CodeForbidden},
		"bad utf8":        {start(thread.StartTurn{Input: thole.Text("\xff")}), thole.CodeInvalid},
		"bad part":        {start(thread.StartTurn{Input: []thole.Input{{Type: "smell"}}}), thole.CodeInvalid},
		"huge":            {start(thread.StartTurn{Input: thole.Text(strings.Repeat("x", 17<<20))}), thole.CodeInvalid},
		"bad turn id":     {start(thread.StartTurn{ID: "x"}), thole.CodeInvalid},
		"steer idle":      {second(b.Steer(bg, me, thread.Steer{Thread: id, Expected: "x", Input: thole.Text("x")})), thole.CodeConflict},
		"interrupt idle":  {b.Interrupt(bg, me, id, "x"), thole.CodeConflict},
		"unknown ask":     {second(b.Answer(bg, me, id, "none", event.Answer{})), thole.CodeNotFound},
		"unknown thread":  {second(b.Get(bg, me, "none")), thole.CodeNotFound},
		"unknown turn":    {second(b.Turn(bg, me, id, "none")), thole.CodeNotFound},
		"bad cursor":      {second(b.Items(bg, me, id, "", thread.PageParams{Cursor: "!"})), thole.CodeInvalid},
		"future cursor":   {second(b.Events(bg, me, id, 99, 1)), thole.CodeInvalid},
		"name with NUL":   {second(b.Update(bg, me, id, thread.Update{Name: new("a\x00")})), thole.CodeInvalid},
		"empty steer":     {second(b.Steer(bg, me, thread.Steer{Thread: id, Expected: "x"})), thole.CodeInvalid},
		"unknown sort":    {second(b.List(bg, me, thread.Filter{Sort: "mood"})), thole.CodeInvalid},
		"phase of nobody": {b.SetPhase(bg, thread.TurnRef{Thread: id, Turn: "none"}, thole.PhaseClaimed, ""), thole.CodeNotFound},
		"one MiB is fine": {start(thread.StartTurn{Input: thole.Text(strings.Repeat("x", 1<<20)), ClientID: "c"}), ""},
	}
	for name, c := range cases {
		if got := thole.CodeOf(c.err); got != c.want {
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
	th, _ := b.Get(bg, me, id)
	if th.Seq != 3 || th.Turns != 1 { // created, started, the user's message
		t.Fatalf("refused calls left traces: %+v", th)
	}
}

func second[T any](_ T, err error) error { return err }
