package providertest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

func askRows() []Row {
	rows := []Row{
		together("approval allow", func(b *Bench) {
			t := b.Start(b.Open(Profile(thole.ProfileAsk)), "sim: run touch made ;; say ok")
			ask := t.UntilAsk(event.AskCommand)
			if !strings.Contains(ask.Command, "touch made") || len(ask.Decisions) == 0 {
				b.Errorf("ask %+v", ask)
			}
			if b.exists("made") {
				b.Error("it ran before it was allowed")
			}
			t.Answer(ask, event.Answer{Decision: event.DecisionAllow})
			r := t.Wait()
			b.outcome(r, thole.OutcomeCompleted)
			if !b.exists("made") {
				b.Errorf("it did not run; events:\n%s", r)
			}
			b.resolved(r, ask, event.DecisionAllow)
		}),
		together("approval deny", func(b *Bench) {
			t := b.Start(b.Open(Profile(thole.ProfileAsk)), "sim: run touch made ;; say went on")
			ask := t.UntilAsk(event.AskCommand)
			t.Answer(ask, event.Answer{Decision: event.DecisionDeny})
			r := t.Wait()
			b.outcome(r, thole.OutcomeCompleted)
			if b.exists("made") || !strings.Contains(r.Text(), "went on") {
				b.Errorf("events:\n%s", r)
			}
			if c := b.command(r, 0); c.State != event.StateDeclined {
				b.Errorf("state %s", c.State)
			}
		}),
		together("approval deny with message", func(b *Bench) {
			t := b.Start(b.Open(Profile(thole.ProfileAsk)), "sim: run touch made ;; say told: %tool% %user%")
			ask := t.UntilAsk(event.AskCommand)
			t.Answer(ask, event.Answer{Decision: event.DecisionDeny, Message: "use the blue one"})
			r := t.Wait()
			b.outcome(r, thole.OutcomeCompleted)
			if b.exists("made") {
				b.Error("it ran")
			}
			if b.Sim != nil && !b.modelSaw("use the blue one") {
				b.Errorf("the model did not get the message; events:\n%s", r)
			}
		}),
		alone("approval always", func(b *Bench) {
			s := b.Open(Profile(thole.ProfileAsk))
			t := b.Start(s, "sim: run touch made ;; run touch made ;; say ok")
			ask := t.UntilAsk(event.AskCommand)
			t.Answer(ask, event.Answer{Decision: event.DecisionAlways})
			r := t.Wait()
			b.outcome(r, thole.OutcomeCompleted)
			if n := len(r.Of(event.AskRequested)); n != 1 {
				b.Errorf("asked %d times; events:\n%s", n, r)
			}
		}),
		together("approval cancel", func(b *Bench) {
			s := b.Open(Profile(thole.ProfileAsk))
			t := b.Start(s, "sim: run touch made ;; say went on")
			ask := t.UntilAsk(event.AskCommand)
			t.Answer(ask, event.Answer{Decision: event.DecisionCancel})
			r := t.Wait()
			b.outcome(r, thole.OutcomeInterrupted)
			if b.exists("made") {
				b.Error("it ran")
			}
			b.outcome(b.Play(s, "sim: say next"), thole.OutcomeCompleted)
		}),
		together("approval of a file change", func(b *Bench) {
			s := b.Open(Profile(thole.ProfileAsk))
			t := b.Start(s, "sim: write made text ;; say ok")
			ask := t.UntilAsk(event.AskFileChange)
			if b.exists("made") {
				b.Error("written before it was allowed")
			}
			if len(ask.Changes) != 1 || !strings.Contains(ask.Changes[0].Diff, "text") {
				b.Errorf("ask %+v", ask)
			}
			t.Answer(ask, event.Answer{Decision: event.DecisionAllow})
			r := t.Wait()
			b.outcome(r, thole.OutcomeCompleted)
			if !strings.HasPrefix(b.File("made"), "text") {
				b.Errorf("not written; events:\n%s", r)
			}
		}),
		together("an ask is settled once", func(b *Bench) {
			s := b.Open(Profile(thole.ProfileAsk))
			t := b.Start(s, "sim: run touch made ;; say ok")
			ask := t.UntilAsk(event.AskCommand)
			t.Answer(ask, event.Answer{Decision: event.DecisionDeny})
			err := s.Answer(context.Background(), ask.ID, event.Answer{Decision: event.DecisionAllow})
			if !errors.Is(err, provider.ErrSettled) && !errors.Is(err, provider.ErrNoTurn) {
				b.Errorf("second answer: %v", err)
			}
			t.Wait()
			if b.exists("made") {
				b.Error("the second answer won")
			}
			if err := s.Answer(context.Background(), ask.ID, event.Answer{}); !errors.Is(err, provider.ErrNoTurn) && !errors.Is(err, provider.ErrSettled) {
				b.Errorf("answer without a turn: %v", err)
			}
		}),
		together("question with options", func(b *Bench) { b.question([]string{"green"}, "green") }),
		together("question with free text", func(b *Bench) { b.question([]string{"something like teal"}, "something like teal") }),
		together("several questions with several choices", func(b *Bench) {
			if b.Harness.AskTool == "" || b.degraded("human_loop", b.Info.Capabilities.HumanLoop) {
				return
			}
			t := b.Start(b.Open(Profile(thole.ProfileAsk)), "sim: call "+b.Harness.AskTool+` {"questions":[`+
				`{"id":"toppings","header":"Toppings","question":"Which toppings?","multiSelect":true,"multiple":true,`+
				`"options":[{"label":"olives","description":"o"},{"label":"capers","description":"c"},{"label":"basil","description":"b"}]},`+
				`{"id":"size","header":"Size","question":"Which size?","multiSelect":false,"options":[{"label":"small","description":"s"},{"label":"large","description":"l"}]}`+
				`]} ;; say told: %tool%`)
			ask := t.UntilAsk(event.AskInput)
			if len(ask.Questions) != 2 || len(ask.Questions[0].Options) < 3 || ask.Questions[0].Multi == b.Harness.OneChoice || ask.Questions[1].Multi || !ask.Questions[1].Free {
				b.Fatalf("ask %+v", ask)
			}
			t.Answer(ask, event.Answer{Answers: map[string][]string{ask.Questions[0].ID: {"olives", "basil"}, ask.Questions[1].ID: {"as large as a wheel"}}})
			r := t.Wait()
			b.outcome(r, thole.OutcomeCompleted)
			for _, want := range []string{"olives", "basil", "as large as a wheel"} {
				if !strings.Contains(r.Text(), want) {
					b.Errorf("the model was told %q, without %q", r.Text(), want)
				}
			}
			b.resolved(r, ask, "")
		}),
		alone("an MCP server asks", elicits),
		together("question in full profile still asks", func(b *Bench) {
			if b.degraded("human_loop", b.Info.Capabilities.HumanLoop) {
				return
			}
			t := b.Start(b.Open(Profile(thole.ProfileFull)), "sim: ask Which? | red | green ;; say ok")
			ask := t.UntilAsk(event.AskInput)
			t.Answer(ask, event.Answer{Answers: map[string][]string{ask.Questions[0].ID: {"red"}}})
			b.outcome(t.Wait(), thole.OutcomeCompleted)
		}),
		alone("question deferred to another process", func(b *Bench) {
			if b.degraded("ask_survives_restart", b.Info.Capabilities.AskSurvives) {
				s := b.Open()
				if !b.Info.Capabilities.HumanLoop.OK() {
					return
				}
				t := b.Start(s, "sim: ask Which? | red | green ;; say ok")
				ask := t.UntilAsk(event.AskInput)
				if err := s.Defer(context.Background(), ask.ID); !errors.Is(err, provider.ErrUnsupported) {
					b.Errorf("defer: %v", err)
				}
				t.Stop()
				b.outcome(t.Wait(), thole.OutcomeInterrupted)
				return
			}
			s := b.Open()
			t := b.Start(s, "sim: ask Which? | red | green ;; say chose %tool%")
			ask := t.UntilAsk(event.AskInput)
			if err := s.Defer(context.Background(), ask.ID); err != nil {
				b.Fatalf("defer: %v", err)
			}
			r := t.Wait()
			if r.Ended().Deferred != ask.ID {
				b.Fatalf("ended %+v", r.Ended())
			}
			_ = s.Close()
			again := b.Open(Resume(s.NativeID()))
			r = b.StartTurn(again, provider.Turn{Reply: &provider.Reply{Ask: ask,
				Answer: event.Answer{Answers: map[string][]string{ask.Questions[0].ID: {"green"}}}}}).Wait()
			b.outcome(r, thole.OutcomeCompleted)
			if !strings.Contains(r.Text(), "green") {
				b.Errorf("text %q", r.Text())
			}
		}),
		alone("approval deferred to another process", func(b *Bench) {
			if b.degraded("ask_survives_restart", b.Info.Capabilities.AskSurvives) {
				return
			}
			for _, yes := range []bool{true, false} {
				file := fmt.Sprintf("made-%v", yes)
				s := b.Open(Profile(thole.ProfileAsk))
				t := b.Start(s, "sim: run touch "+file+" ;; say it ran")
				ask := t.UntilAsk(event.AskCommand)
				if err := s.Defer(context.Background(), ask.ID); err != nil {
					b.Fatalf("defer: %v", err)
				}
				if err := s.Answer(context.Background(), ask.ID, event.Answer{Decision: event.DecisionAllow}); err == nil {
					b.Errorf("a parked ask took an answer of the process that forgets it")
				}
				r := t.Wait()
				if r.Ended().Deferred != ask.ID || len(r.Of(event.AskResolved)) > 0 || b.exists(file) {
					b.Fatalf("ended %+v, events:\n%s", r.Ended(), r)
				}
				_ = s.Close()
				// The model wants the same again, and then something that nobody allowed.
				answer := event.Answer{Decision: event.DecisionAllow, Message: "sim: run touch " + file + " ;; run touch other-" + file + " ;; say went on"}
				if !yes {
					answer = event.Answer{Decision: event.DecisionDeny, Message: "sim: say without it"}
				}
				again := b.StartTurn(b.Open(Resume(s.NativeID()), Profile(thole.ProfileAsk)), provider.Turn{Reply: &provider.Reply{Ask: ask, Answer: answer}})
				if yes {
					other := again.UntilAsk(event.AskCommand, ask.ID) // which is reported again, with its answer
					if !strings.Contains(other.Command, "other-") {
						b.Errorf("it asks for %q again", other.Command)
					}
					again.Answer(other, event.Answer{Decision: event.DecisionDeny})
				}
				r = again.Wait()
				b.outcome(r, thole.OutcomeCompleted)
				if b.exists(file) != yes || b.exists("other-"+file) || len(r.Of(event.AskResolved)) == 0 {
					b.Errorf("allowed %v: made %v and another %v; events:\n%s", yes, b.exists(file), b.exists("other-"+file), r)
				}
			}
		}),
	}
	for i, row := range rows {
		if strings.HasPrefix(row.Name, "approval") || row.Name == "an ask is settled once" {
			rows[i].Run = func(b *Bench) {
				if !b.unasked() {
					row.Run(b)
				}
			}
		}
	}
	return rows
}

// unasked asserts the degradation of a CLI that cannot ask for approval: what
// would need it is refused, and the turn goes on.
func (b *Bench) unasked() bool {
	b.Helper()
	if !b.degraded("tool_approval", b.Info.Capabilities.ToolApproval) {
		return false
	}
	r := b.Play(b.Open(Profile(thole.ProfileAsk)), "sim: run touch made ;; write made2 text ;; say went on")
	b.outcome(r, thole.OutcomeCompleted)
	if b.exists("made") || b.exists("made2") || !strings.Contains(r.Text(), "went on") {
		b.Errorf("events:\n%s", r)
	}
	return true
}

func (b *Bench) question(answer []string, want string) {
	b.Helper()
	if b.degraded("human_loop", b.Info.Capabilities.HumanLoop) {
		return
	}
	t := b.Start(b.Open(Profile(thole.ProfileAsk)), "sim: ask Which colour? | red | green | blue ;; say chose %tool%")
	ask := t.UntilAsk(event.AskInput)
	if len(ask.Questions) != 1 || ask.Questions[0].Text != "Which colour?" || len(ask.Questions[0].Options) < 3 {
		b.Errorf("ask %+v", ask)
	}
	t.Answer(ask, event.Answer{Answers: map[string][]string{ask.Questions[0].ID: answer}})
	r := t.Wait()
	b.outcome(r, thole.OutcomeCompleted)
	if !strings.Contains(r.Text(), want) {
		b.Errorf("the model was told %q", r.Text())
	}
	b.resolved(r, ask, "")
}

func (b *Bench) resolved(r Record, ask event.Ask, want event.Decision) {
	b.Helper()
	for _, e := range r.Of(event.AskResolved) {
		if e.AskID == ask.ID && e.Answer != nil && e.Answer.Decision == want {
			return
		}
	}
	b.Errorf("the ask was not resolved as %q; events:\n%s", want, r)
}

func (b *Bench) exists(name string) bool { return exists(b.Config.Dir, name) }

// modelSaw reports whether any request to the model contained text.
func (b *Bench) modelSaw(text string) bool {
	for _, r := range b.Sim.Requests() {
		if strings.Contains(string(r.Body), text) {
			return true
		}
	}
	return false
}
