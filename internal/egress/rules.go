package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tholehq/thole/internal/unguarded"
)

// Refusal is the error of a connection that policy or address forbids. Its text says
// which rule refused and what a person can set.
type Refusal struct {
	Target string
	Why    string // the rule: "not in egress.names"
	Fix    string // what a person can set, "" for nothing
}

func (r *Refusal) Error() string {
	text := "connection to " + r.Target + " refused: " + r.Why
	if r.Fix != "" {
		text += "; " + r.Fix
	}
	return text
}

// rules is a Config's lists in the form that targets are compared in.
type rules struct {
	policy  Policy
	names   []name
	private map[string]bool // by target
	models  *sync.Map       // the same; some come later
	leads   *sync.Map       // names of Lead, which are no targets
	narrow  *atomic.Pointer[narrow]
}

type name struct {
	target
	below bool // every name below host instead of host
}

func (n name) matches(t target) bool {
	if n.port != 0 && n.port != t.port {
		return false
	}
	if n.below {
		return strings.HasSuffix(t.host, "."+n.host)
	}
	return t.host == n.host
}

func newRules(c Config) (rules, error) {
	r := rules{policy: c.Policy, private: map[string]bool{}, models: &sync.Map{}, leads: &sync.Map{}, narrow: &atomic.Pointer[narrow]{}}
	if c.Policy == "" {
		r.policy = None
	}
	if !slices.Contains(Policies, r.policy) {
		return r, fmt.Errorf("invalid egress policy %q: must be one of %v", c.Policy, Policies)
	}
	for _, s := range c.Names {
		n, err := parseName(s)
		if err != nil {
			return r, err
		}
		r.names = append(r.names, n)
	}
	for _, s := range c.Private {
		t, err := parseTarget(s)
		if err != nil {
			return r, err
		}
		r.private[t.String()] = true
	}
	return r, r.allow(c.Models)
}

func (r rules) allow(models []string) error {
	for _, s := range models {
		t, err := parseTarget(s)
		if err != nil {
			return err
		}
		r.models.Store(t.String(), true)
	}
	return nil
}

func (r rules) model(t target) bool {
	if t.lead {
		return true
	}
	_, ok := r.models.Load(t.String())
	return ok
}

// CheckName reports what is wrong with an entry of Names.
func CheckName(s string) error { _, err := parseName(s); return err }

// CheckTarget reports what is wrong with an entry of Private or Models. Targets that no
// setting makes reachable are an error too: the entry would have no effect.
func CheckTarget(s string) error {
	t, err := parseTarget(s)
	if err != nil {
		return err
	}
	if t.addr.IsValid() {
		if sp, ok := classify(t.addr); ok && sp.never {
			return fmt.Errorf("%s is %s, which is never reachable", t, sp.is)
		}
	}
	return nil
}

func parseName(s string) (n name, err error) {
	rest, below := strings.CutPrefix(s, "*.")
	if strings.Contains(rest, ":") && !strings.Contains(rest, "::") {
		n.target, err = parseTarget(rest)
	} else {
		n.target, err = newTarget(rest, 0)
	}
	if err == nil && below && n.addr.IsValid() {
		err = fmt.Errorf("invalid name %s: there are no names below an address", clip(s))
	}
	if err != nil {
		return n, fmt.Errorf("%w (names are example.com, *.example.com or example.com:443)", err)
	}
	n.below = below
	return n, nil
}

// named reports whether a person's entry covers t whatever its address is.
func (r rules) named(t target) bool { return r.model(t) || r.private[t.String()] }

// byName refuses what the policy forbids whatever the address is, so that a refused
// name is not even looked up.
func (r rules) byName(t target) *Refusal {
	if n := r.narrow.Load(); n != nil {
		if refusal := n.refuse(t, r.model(t)); refusal != nil {
			return refusal
		}
	}
	switch {
	case r.policy == None:
		return &Refusal{t.String(), `egress.policy "none" allows no connection`, `a person can set egress.policy to "gateway", "list" or "open"`}
	case r.model(t) || r.policy == Open:
		return nil
	case r.policy == Gateway:
		return &Refusal{t.String(), `egress.policy "gateway" allows the configured models only`, `a person can set egress.policy to "list" or "open"`}
	case r.private[t.String()] || slices.ContainsFunc(r.names, func(n name) bool { return n.matches(t) }):
		return nil
	}
	return &Refusal{t.String(), `egress.policy "list" allows only what egress.names has`, fmt.Sprintf(`a person can add %q to egress.names, or set egress.policy to "open"`, t.host)}
}

// byAddress refuses addresses that are not public, or that are this machine's.
func (r rules) byAddress(t target, a netip.Addr, own []netip.Addr) *Refusal {
	if unguarded.Build {
		return nil
	}
	s, ok := classify(a)
	if !ok && slices.Contains(own, a.Unmap()) {
		s, ok = special{is: "an address of this machine"}, true
	}
	switch {
	case !ok:
		return nil
	case s.never:
		return &Refusal{t.String(), at(t, a) + s.is + ", which no setting allows", ""}
	case r.named(t):
		return nil
	}
	return &Refusal{t.String(), at(t, a) + s.is, fmt.Sprintf("a person can add %q to egress.private", t.String())}
}

func at(t target, a netip.Addr) string {
	if t.addr.IsValid() {
		return "it is "
	}
	return "it resolves to " + a.String() + ", "
}
