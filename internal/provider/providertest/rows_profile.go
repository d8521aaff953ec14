package providertest

import (
	"errors"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// longStart is the start-up deadline of a CLI that will miss it.
const longStart = 3 * time.Second

func profileRows() []Row {
	var rows []Row
	for _, confined := range []bool{false, true} {
		name, kind := func(s string) string { return s }, together
		if confined {
			name, kind = func(s string) string { return s + ", without user namespaces" }, alone
		}
		rows = append(rows,
			kind(name("plan writes nothing"), func(b *Bench) {
				b.confine(confined)
				if b.unheld(confined, thole.ProfilePlan) {
					return
				}
				s := b.Open(Profile(thole.ProfilePlan))
				t := b.Start(s, "sim: run echo x > made ;; write made2 text ;; escalate echo y > made3 ;; say planned")
				r := t.allowAll()
				if r.Outcome() != thole.OutcomeCompleted && r.Outcome() != thole.OutcomeInterrupted {
					b.Errorf("outcome %s; events:\n%s", r.Outcome(), r)
				}
				for _, f := range []string{"made", "made2", "made3"} {
					if b.exists(f) {
						b.Errorf("%s was written in plan; events:\n%s", f, r)
					}
				}
			}),
			kind(name("ask asks before it writes"), func(b *Bench) {
				b.confine(confined)
				if b.unheld(confined, thole.ProfileAsk) || b.unasked() {
					return
				}
				s := b.Open(Profile(thole.ProfileAsk))
				t := b.Start(s, "sim: run echo x > made ;; write made2 text ;; say ok")
				ask := t.Until("ask", isAsk)
				if b.exists("made") {
					b.Error("it ran before it was allowed")
				}
				t.Answer(*ask.Ask, event.Answer{Decision: event.DecisionAllow})
				r := t.allowAll(ask.Ask.ID)
				b.outcome(r, thole.OutcomeCompleted)
				if n := len(r.Of(event.AskRequested)); n < 2 || !b.exists("made") || !b.exists("made2") {
					b.Errorf("%d asks, made %v, made2 %v; events:\n%s", n, b.exists("made"), b.exists("made2"), r)
				}
			}),
			kind(name("edit edits without asking"), func(b *Bench) {
				b.confine(confined)
				if b.unheld(confined, thole.ProfileEdit) {
					return
				}
				s := b.Open(Profile(thole.ProfileEdit))
				r := b.Play(s, "sim: write made text ;; say ok")
				b.outcome(r, thole.OutcomeCompleted)
				if len(r.Of(event.AskRequested)) > 0 || !strings.HasPrefix(b.File("made"), "text") {
					b.Errorf("events:\n%s", r)
				}
			}),
			kind(name("full asks nothing"), func(b *Bench) {
				b.confine(confined)
				s := b.Open(Profile(thole.ProfileFull))
				r := b.Play(s, "sim: run echo x > made ;; write made2 text ;; say ok")
				b.outcome(r, thole.OutcomeCompleted)
				if len(r.Of(event.AskRequested)) > 0 || !b.exists("made") || !b.exists("made2") {
					b.Errorf("events:\n%s", r)
				}
			}),
		)
	}
	return append(rows,
		together("a turn's profile is for that turn", func(b *Bench) {
			s := b.Open(Profile(thole.ProfileFull))
			t := b.StartTurn(s, provider.Turn{Input: thole.Text("sim: run echo x > made ;; say ok"), Settings: event.Settings{Profile: thole.ProfilePlan}})
			if r := t.allowAll(); b.exists("made") {
				b.Errorf("written in plan; events:\n%s", r)
			}
			r := b.Play(s, "sim: run echo x > made ;; say ok")
			b.outcome(r, thole.OutcomeCompleted)
			if !b.exists("made") {
				b.Errorf("the turn's profile stayed; events:\n%s", r)
			}
		}),
		alone("an unknown profile is refused", func(b *Bench) {
			if _, err := b.TryOpen(Profile("no-such-mode")); thole.CodeOf(err) != thole.CodeInvalid {
				b.Errorf("open: %v", err)
			}
		}),
		together("native modes ask as they say", func(b *Bench) {
			if len(b.Info.Modes) == 0 {
				return
			}
			s := b.Open(Profile(thole.ProfileAsk))
			for i, mode := range b.Info.Modes {
				file := "made-" + strconv.Itoa(i)
				t := b.StartTurn(s, provider.Turn{Input: thole.Text("sim: write " + file + " text ;; say ok"), Settings: event.Settings{Profile: thole.Profile(mode.Mode)}})
				r := t.decideAll(event.DecisionDeny)
				if mode.Asks && b.exists(file) {
					b.Errorf("%s wrote what was denied; events:\n%s", mode.Mode, r)
				}
				if !mode.Asks && len(r.Of(event.AskRequested)) > 0 {
					b.Errorf("%s asked; events:\n%s", mode.Mode, r)
				}
			}
		}),
		alone("native profiles pass through", func(b *Bench) {
			for _, row := range b.Info.Profiles {
				if row.Profile == thole.ProfilePlan {
					s := b.Open(Profile(thole.Profile(row.Native)))
					r := b.Start(s, "sim: run echo x > made ;; say ok").allowAll()
					if b.exists("made") {
						b.Errorf("%s wrote; events:\n%s", row.Native, r)
					}
				}
			}
			if len(b.Info.Profiles) != 4 {
				b.Errorf("profiles %+v", b.Info.Profiles)
			}
		}),
	)
}

// unheld asserts that a CLI which cannot ask, and so cannot be held to a profile
// without its sandbox, refuses to open in it.
func (b *Bench) unheld(confined bool, p thole.Profile) bool {
	b.Helper()
	if !confined || b.Info.Capabilities.ToolApproval.OK() {
		return false
	}
	if _, err := b.TryOpen(Profile(p)); !errors.Is(err, provider.ErrUnsupported) {
		b.Errorf("open in %s: %v", p, err)
	}
	return true
}

func isAsk(e event.Event) bool { return e.Kind == event.AskRequested }

// allowAll answers every ask with yes until the turn ends: what is still not
// done then was denied by the host.
func (t *Turn) allowAll(seen ...thole.AskID) Record {
	t.b.Helper()
	return t.decideAll(event.DecisionAllow, seen...)
}

// decideAll answers every ask alike until the turn ends.
func (t *Turn) decideAll(decision event.Decision, seen ...thole.AskID) Record {
	t.b.Helper()
	known := map[thole.AskID]bool{}
	for _, id := range seen {
		known[id] = true
	}
	for {
		e := t.Until("ask or end", func(e event.Event) bool {
			return e.Kind == event.TurnEnded || isAsk(e) && !known[e.Ask.ID]
		})
		if e.Kind == event.TurnEnded {
			return t.Wait()
		}
		known[e.Ask.ID] = true
		answer := event.Answer{Decision: decision}
		for _, q := range e.Ask.Questions {
			answer.Answers = map[string][]string{q.ID: {"yes"}}
		}
		t.Answer(*e.Ask, answer)
	}
}
