package appserver

import (
	"encoding/json"
	"testing"

	"github.com/tholehq/thole/event"
)

// An answer settles an ask within what was offered: a rule is the one that the ask had, and
// no answer to a question is a no that the agent hears at once.
func TestAnswersWithinTheOffer(t *testing.T) {
	offers := event.Ask{Kind: event.AskCommand, Amendment: json.RawMessage(`["git","status"]`)}
	asks := event.Ask{Kind: event.AskInput, Questions: []event.Question{{ID: "q1", Text: "Which?"}}}
	for name, c := range map[string]struct {
		ask  event.Ask
		raw  string
		want event.Decision // "refused" for none
	}{
		"the rule":         {offers, `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["git", "status"]}}}`, event.DecisionAlways},
		"a wider rule":     {offers, `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["git"]}}}`, "refused"},
		"another rule":     {offers, `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["rm","-rf"]}}}`, "refused"},
		"an empty rule":    {offers, `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":[]}}}`, "refused"},
		"no rule":          {offers, `{"decision":{"acceptWithExecpolicyAmendment":{}}}`, "refused"},
		"rule of a word":   {offers, `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":"git status"}}}`, "refused"},
		"not offered":      {event.Ask{Kind: event.AskCommand}, `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["git","status"]}}}`, "refused"},
		"of an edit":       {event.Ask{Kind: event.AskFileChange, Amendment: offers.Amendment}, `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["git","status"]}}}`, "refused"},
		"a network rule":   {offers, `{"decision":{"applyNetworkPolicyAmendment":{"network_policy_amendment":{"host":"example.com","action":"allow"}}}}`, "refused"},
		"both":             {offers, `{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["git","status"]},"applyNetworkPolicyAmendment":{}}}`, "refused"},
		"no answer":        {asks, `{"answers":{}}`, event.DecisionDeny},
		"an answer":        {asks, `{"answers":{"q1":{"answers":["a"]}}}`, ""},
		"nothing skipped":  {asks, `{"answers":{"q1":{"answers":[]}}}`, ""},
		"answers are null": {asks, `{"answers":null}`, "refused"},
		"nothing at all":   {asks, `{}`, "refused"},
	} {
		a, err := parseAnswer(c.ask, json.RawMessage(c.raw))
		got := a.Decision
		if err != nil {
			got = "refused"
		}
		if got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}
