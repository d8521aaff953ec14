package egress

import (
	"errors"
	"fmt"
	"slices"
)

// narrow is what one thread allows of what the configuration does. A target passes
// only if both allow it, so that no thread ever reaches more than the configuration says.
type narrow struct {
	policy Policy
	names  []name
}

// maxAllow bounds the names of a thread.
const maxAllow = 256

func newNarrow(p Policy, allow []string) (*narrow, error) {
	n := &narrow{policy: p}
	if !slices.Contains(Policies, p) {
		return nil, fmt.Errorf("invalid network policy %q: must be one of %v", p, Policies)
	}
	if p != List && len(allow) > 0 {
		return nil, fmt.Errorf("policy %q takes no names: only %q does", p, List)
	}
	if len(allow) > maxAllow {
		return nil, fmt.Errorf("%d names are too many: at most %d", len(allow), maxAllow)
	}
	for _, s := range allow {
		one, err := parseName(s)
		if err != nil {
			return nil, err
		}
		n.names = append(n.names, one)
	}
	return n, nil
}

func (n *narrow) refuse(t target, model bool) *Refusal {
	const fix = "a person can change it: thole thread network THREAD --set POLICY"
	switch {
	case n.policy == Open, model && n.policy != None:
		return nil
	case n.policy == List && slices.ContainsFunc(n.names, func(n name) bool { return n.matches(t) }):
		return nil
	case n.policy == List:
		return &Refusal{t.String(), "it is not in the list of this thread", fix}
	}
	return &Refusal{t.String(), fmt.Sprintf("the network of this thread is %q", n.policy), fix}
}

// Narrow allows only what a thread's policy and names allow too, in place of those of
// an earlier call. It holds for new connections at once, and ends open ones that it refuses.
func (p *Proxy) Narrow(policy Policy, allow []string) error {
	n, err := newNarrow(policy, allow)
	if err != nil {
		return err
	}
	p.rules.narrow.Store(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.flows {
		if p.rules.byName(f.to) != nil {
			_ = f.s.Close()
		}
	}
	return nil
}

// CheckNarrow says what is wrong with a thread's policy and names under a configuration:
// they may allow no more than it does.
func (c Config) CheckNarrow(policy Policy, allow []string) error {
	n, err := newNarrow(policy, allow)
	if err != nil {
		return err
	}
	r, err := newRules(c)
	if err != nil {
		return err
	}
	if slices.Index(Policies, policy) > slices.Index(Policies, r.policy) {
		return fmt.Errorf("policy %q allows more than egress.policy of the configuration, which is %q", policy, r.policy)
	}
	if r.policy != List {
		return nil
	}
	var errs []error
	for _, one := range n.names {
		if !slices.ContainsFunc(r.names, func(by name) bool { return by.covers(one) }) && !r.private[one.String()] {
			errs = append(errs, fmt.Errorf("%s is not in egress.names of the configuration", one.text()))
		}
	}
	return errors.Join(errs...)
}

// covers reports whether every target that another name matches is matched.
func (n name) covers(other name) bool {
	if n.port != 0 && n.port != other.port {
		return false
	}
	if other.below {
		return n.below && (n.host == other.host || n.matches(target{host: other.host, port: n.port}))
	}
	return n.matches(target{host: other.host, port: other.port})
}

func (n name) text() string {
	s := n.host
	if n.port != 0 {
		s = n.target.String()
	}
	if n.below {
		s = "*." + s
	}
	return s
}
