package testprovider

import (
	"context"
	"maps"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// command runs a shell command in the workspace, as agents do.
func (r *run) command(line string, escalate bool) error {
	item := thole.Item{ID: r.nextID("command"), Kind: thole.ItemCommand,
		Command: &thole.Command{Line: line, Dir: r.session.cfg.Dir}}
	r.em.Start(item)
	asks := r.profile == thole.ProfileAsk || escalate && r.profile != thole.ProfileFull
	verdict, err := r.permit(thole.Ask{Kind: thole.AskCommand, Item: item.ID, Title: "Run a command", Command: line, Dir: r.session.cfg.Dir}, asks, "run")
	if err != nil {
		return err
	}
	if verdict != "" {
		item.State, r.result = thole.ItemDeclined, verdict
		r.em.Complete(item)
		return nil
	}
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"}
	maps.Copy(env, r.session.cfg.Env)
	r.result, err = r.em.Shell(r.ctx, item, env)
	return err
}

// permit decides by profile whether something may be done. The text it returns
// is what the agent is told when it may not.
func (r *run) permit(ask thole.Ask, asks bool, kind string) (string, error) {
	if r.profile == thole.ProfilePlan {
		return "denied: plan mode changes nothing", nil
	}
	if !asks || r.session.always[kind] {
		return "", nil
	}
	ask.Decisions = []thole.Decision{thole.DecisionAllow, thole.DecisionAlways, thole.DecisionDeny, thole.DecisionCancel}
	answer, err := r.wants(ask)
	if err != nil {
		return "", err
	}
	switch answer.Decision {
	case thole.DecisionAllow:
		return "", nil
	case thole.DecisionAlways:
		r.session.always[kind] = true
		return "", nil
	case thole.DecisionCancel:
		return "", stopScript{provider.Ended{Outcome: thole.OutcomeInterrupted}}
	}
	return "denied: " + answer.Message, nil
}

func (r *run) question(arg string) error {
	q := question(arg)
	answer, err := r.wants(thole.Ask{Kind: thole.AskInput, Item: r.nextID("question"), Title: q.Text, Questions: []thole.Question{q}})
	if err != nil {
		return err
	}
	r.result = answerText(answer)
	return nil
}

func answerText(a thole.Answer) string {
	if text := strings.Join(a.Answers["q1"], ", "); text != "" {
		return text
	}
	return "no answer: " + a.Message
}

// wants puts an ask and waits for its answer.
func (r *run) wants(ask thole.Ask) (thole.Answer, error) {
	ask.ID = r.em.AskID(string(ask.Item))
	ch := make(chan thole.Answer, 1)
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
		for _, o := range r.ops {
			r.session.state.Rest = append(r.session.state.Rest, o.verb+" "+o.arg)
		}
		if err := r.session.save(); err != nil {
			return thole.Answer{}, err
		}
		return thole.Answer{}, stopScript{provider.Ended{Outcome: thole.OutcomeCompleted, Deferred: id}}
	case <-r.ctx.Done():
		r.session.mu.Lock()
		delete(r.asks, ask.ID)
		r.session.mu.Unlock()
		return thole.Answer{}, context.Cause(r.ctx)
	}
}
