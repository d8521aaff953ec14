package thread

import (
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
)

// OnTimeout is what becomes of a turn whose ask nobody answered in time.
type OnTimeout string

const (
	TimeoutFail    OnTimeout = "fail"    // the turn stops and counts as failed
	TimeoutDefault OnTimeout = "default" // the configured reply is given
	TimeoutCancel  OnTimeout = "cancel"  // the turn is interrupted
)

// AskPolicy is how long one kind of ask waits and what happens then.
type AskPolicy struct {
	Wait      time.Duration // 0 waits for ever
	OnTimeout OnTimeout
	Default   *event.Answer // for TimeoutDefault
}

// How long asks wait unless configured.
const (
	questionWait = 15 * time.Minute
	approvalWait = 24 * time.Hour
	toolWait     = 5 * time.Minute // a program answers
)

// reply is the default answer to an ask: to each of its questions, if it has some.
func (p AskPolicy) reply(ask event.Ask) event.Answer {
	a := *p.Default
	if ask.Kind == event.AskInput && len(a.Answers) == 0 {
		a.Answers = map[string][]string{}
		for _, q := range ask.Questions {
			a.Answers[q.ID] = []string{a.Message}
		}
	}
	return a
}

// Policies holds what differs from the defaults, per kind.
type Policies map[event.AskKind]AskPolicy

// For returns the policy of a kind. Silence is never a yes: unanswered asks fail
// the turn, questions after fifteen minutes and approvals after a day. A call of a
// client's tool fails by itself, and the agent goes on.
func (p Policies) For(k event.AskKind) AskPolicy {
	if set, ok := p[k]; ok {
		return set
	}
	if k == event.AskTool {
		return AskPolicy{Wait: toolWait, OnTimeout: TimeoutDefault, Default: &event.Answer{
			Decision: event.DecisionDeny, Message: "no client answered the call in time"}}
	}
	if k.Approval() {
		return AskPolicy{Wait: approvalWait, OnTimeout: TimeoutFail}
	}
	return AskPolicy{Wait: questionWait, OnTimeout: TimeoutFail}
}

// Validate refuses a default reply that is missing or that the kind cannot take.
func (p Policies) Validate() error {
	for k, set := range p {
		switch set.OnTimeout {
		case TimeoutDefault:
			if set.Default != nil && k.Approval() && set.Default.Decision != event.DecisionDeny {
				return thole.Errorf(thole.CodeInvalid, "ask policy %s: silence is never a yes", k).WithHint("the default reply to an approval can only be deny")
			}
			if set.Default == nil {
				return thole.Errorf(thole.CodeInvalid, "ask policy %s: a default reply is configured but not given", k)
			}
		case TimeoutFail, TimeoutCancel:
		case "":
			if set.Wait > 0 {
				return thole.Errorf(thole.CodeInvalid, "ask policy %s: say what happens after %s", k, set.Wait)
			}
		default:
			return thole.Errorf(thole.CodeInvalid, "ask policy %s: unknown action %q", k, set.OnTimeout).
				WithHint("use fail, default or cancel")
		}
		if set.Wait < 0 {
			return thole.Errorf(thole.CodeInvalid, "ask policy %s: negative wait", k)
		}
	}
	return nil
}
