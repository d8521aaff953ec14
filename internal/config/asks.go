package config

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

// Asks is the policy for asks that nobody answers.
type Asks struct {
	InputTimeout    time.Duration `toml:"input_timeout"`
	InputPolicy     string        `toml:"input_policy"` // fail, default, wait
	DefaultReply    string        `toml:"default_reply"`
	ApprovalTimeout time.Duration `toml:"approval_timeout"`
	ApprovalPolicy  string        `toml:"approval_policy"` // fail, deny, cancel, wait
	// One kind of ask each: "DURATION POLICY" or "wait"; empty is as above.
	Command     string `toml:"command"`
	FileChange  string `toml:"file_change"`
	Permissions string `toml:"permissions"`
	Plan        string `toml:"plan"`
	Elicitation string `toml:"elicitation"`
	Tool        string `toml:"tool"`
	// Auth was for a kind that no agent ever put; files that name it still open.
	Auth string `toml:"auth" retired:""`
}

// ApprovalPolicies are what may happen to an approval that nobody gives.
var ApprovalPolicies = []string{"fail", "deny", "cancel", "wait"}

// AskRule reads the policy of one kind of ask: how long it waits, and what happens
// then.
func AskRule(text string) (wait time.Duration, policy string, err error) {
	if text == "wait" {
		return 0, "wait", nil
	}
	duration, policy, _ := strings.Cut(text, " ")
	policy = strings.TrimSpace(policy)
	if wait, err = time.ParseDuration(duration); err != nil || wait <= 0 || policy == "wait" || !slices.Contains(ApprovalPolicies, policy) {
		return 0, "", errors.New(`must be "DURATION POLICY" with one of fail, deny, cancel, as in "8h deny", or "wait"`)
	}
	return wait, policy, nil
}

// Kinds are the rules of single kinds that were set, by the name of the kind.
func (a Asks) Kinds() map[string]string {
	kinds := map[string]string{"command": a.Command, "file_change": a.FileChange, "permissions": a.Permissions, "plan": a.Plan,
		"elicitation": a.Elicitation, "tool": a.Tool}
	maps.DeleteFunc(kinds, func(_, rule string) bool { return rule == "" })
	return kinds
}
