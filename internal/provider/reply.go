package provider

import (
	"bytes"
	"cmp"
	"reflect"
	"strings"

	"github.com/tholehq/thole/event"
)

// Prose says the answer to an ask that its CLI no longer holds.
func (r Reply) Prose() string {
	var b strings.Builder
	no := r.Answer.Decision == event.DecisionDeny || r.Answer.Decision == event.DecisionCancel
	if r.Ask.Kind.Approval() {
		b.WriteString("You were stopped while you waited for my permission: " + cmp.Or(r.Ask.Title, string(r.Ask.Kind)) + "\n")
		if r.Ask.Command != "" {
			b.WriteString("    " + r.Ask.Command + "\n")
		}
		for _, c := range r.Ask.Changes {
			b.WriteString("    " + c.Path + "\n")
		}
		if no {
			b.WriteString("I do not permit it. Go on without it.\n")
		} else {
			b.WriteString("I permit it. Do it now, exactly so, and go on.\n")
		}
		b.WriteString(r.Answer.Message)
		return b.String()
	}
	b.WriteString("My answer to your earlier question:\n")
	if no {
		b.WriteString("I would rather not answer. ")
	}
	for _, q := range r.Ask.Questions {
		if got := r.Answer.Answers[q.ID]; len(got) > 0 {
			b.WriteString("- " + q.Text + " " + strings.Join(got, ", ") + "\n")
		}
	}
	b.WriteString(r.Answer.Message)
	return b.String()
}

// Allows reports whether the answer is a yes to this very ask: the same command in
// the same directory, the same changes, the same call, the same rights.
func (r Reply) Allows(ask event.Ask) bool {
	was := r.Ask
	yes := r.Answer.Decision == event.DecisionAllow || r.Answer.Decision == event.DecisionAlways
	return yes && ask.Kind.Approval() && was.Kind == ask.Kind && was.Command == ask.Command && was.Dir == ask.Dir &&
		reflect.DeepEqual(was.Changes, ask.Changes) && sameCall(was.Tool, ask.Tool) &&
		(ask.Kind != event.AskPermissions || bytes.Equal(was.Amendment, ask.Amendment)) &&
		(ask.Command != "" || len(ask.Changes) > 0 || ask.Tool != nil || was.Title == ask.Title)
}

func sameCall(a, b *event.ToolCall) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.Server == b.Server && bytes.Equal(a.Input, b.Input)
}
