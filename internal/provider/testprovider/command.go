package testprovider

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// command runs a shell command in the workspace, as agents do.
func (r *run) command(line string, escalate bool) error {
	item := event.Item{ID: r.nextID("command"), Kind: event.ItemCommand,
		Command: &event.Command{Line: line, Dir: r.session.cfg.Dir}}
	r.em.Start(item)
	asks := r.profile == thole.ProfileAsk || escalate && r.profile != thole.ProfileFull
	ask := event.Ask{Kind: event.AskCommand, Item: item.ID, Title: "Run a command", Command: line, Dir: r.session.cfg.Dir}
	if escalate { // with a rule to remember, as codex has one
		ask.Amendment, _ = json.Marshal(strings.SplitN(line, " ", 2)[:1])
	}
	verdict, err := r.permit(ask, asks, "run")
	if err != nil {
		return err
	}
	if verdict != "" {
		item.State, r.result = event.StateDeclined, verdict
		r.em.Complete(item)
		return nil
	}
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"}
	maps.Copy(env, r.session.cfg.Env)
	r.result, err = r.em.Shell(r.ctx, item, env, r.session.cfg.Box)
	return err
}

// permit decides by profile whether something may be done. The text it returns
// is what the agent receives when it may not.
func (r *run) permit(ask event.Ask, asks bool, kind string) (string, error) {
	if r.profile == thole.ProfilePlan {
		return "denied: plan mode changes nothing", nil
	}
	if !asks || r.session.always[kind] {
		return "", nil
	}
	ask.Decisions = []event.Decision{event.DecisionAllow, event.DecisionAlways, event.DecisionDeny, event.DecisionCancel}
	if r.reply != nil && r.reply.Allows(ask) {
		r.reply = nil
		return "", nil
	}
	answer, err := r.wants(ask)
	if err != nil {
		return "", err
	}
	switch answer.Decision {
	case event.DecisionAllow:
		return "", nil
	case event.DecisionAlways:
		r.session.always[kind] = true
		return "", nil
	case event.DecisionCancel:
		return "", stopScript{provider.Ended{Outcome: thole.OutcomeInterrupted}}
	}
	return "denied: " + answer.Message, nil
}

func (r *run) question(arg string) error {
	q := question(arg)
	answer, err := r.wants(event.Ask{Kind: event.AskInput, Item: r.nextID("question"), Title: q.Text, Questions: []event.Question{q}})
	if err != nil {
		return err
	}
	r.result = answerText(answer)
	return nil
}

func answerText(a event.Answer) string {
	if text := strings.Join(a.Answers["q1"], ", "); text != "" {
		return text
	}
	return "no answer: " + a.Message
}

// wants puts an ask and waits for its answer.
func (r *run) wants(ask event.Ask) (event.Answer, error) {
	ask.ID = r.em.AskID(string(ask.Item))
	ch := make(chan event.Answer, 1)
	r.session.mu.Lock()
	r.asks[ask.ID] = ch
	r.session.mu.Unlock()
	r.em.Ask(ask)
	select {
	case a := <-ch:
		r.em.Resolve(ask.ID, &a)
		return a, nil
	case id := <-r.deferred:
		r.session.mu.Lock()
		defer r.session.mu.Unlock()
		left := r.ops
		if ask.Kind.Approval() {
			left = append([]op{r.now}, r.ops...)
		}
		for _, o := range left {
			r.session.state.Rest = append(r.session.state.Rest, o.verb+" "+o.arg)
		}
		if err := r.session.save(); err != nil {
			return event.Answer{}, err
		}
		return event.Answer{}, stopScript{provider.Ended{Outcome: thole.OutcomeCompleted, Deferred: id}}
	case <-r.ctx.Done():
		r.session.mu.Lock()
		delete(r.asks, ask.ID)
		r.session.mu.Unlock()
		return event.Answer{}, context.Cause(r.ctx)
	}
}
