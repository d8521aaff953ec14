package appserver

import (
	"cmp"
	"context"
	"maps"
	"slices"

	thole "github.com/tholehq/thole"
	clis "github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/protocol/app"
)

// terminal is how the Codex TUI names itself.
const terminal = clis.Contract + "-tui"

// isTerminal reports whether the client is one. When a turn is stopped, it sends again what it
// gave to the turn and no agent has, or puts it back where it was typed.
func (c *conn) isTerminal() bool {
	p := c.peer()
	return p != nil && p.info.Name == terminal
}

// signsIn is the first TUI that takes the server's word for it that no account is needed.
// Those before it ask their user to sign in unless there is one.
const signsIn = "0.156.0"

// tooOld refuses a TUI from before the contract that is served here.
func tooOld(info app.ClientInfo) error {
	if info.Name != terminal || !version.Older(info.Version, version.OldestTUI) {
		return nil
	}
	return thole.Errorf(thole.CodeUnsupported, "the Codex TUI %s is too old: %s is the oldest that works", info.Version, version.OldestTUI).
		WithHint("%s", clis.Of(clis.Contract).Install)
}

// canHave are the models for the threads that a TUI follows: one that has turns stays with
// its agent, and its user is offered nothing that would be refused. A model that is not listed
// is offered to the thread that has it. The TUI reads the list when it starts, after it has
// looked at the thread that it opens, and shows that one until it has the answer to the next,
// for which it asks when its user wants to choose.
func (s *Server) canHave(ctx context.Context, c *conn, models []app.Model) ([]app.Model, error) {
	threads, err := s.near(ctx, c)
	if err != nil {
		return nil, err
	}
	agents, has := map[string]bool{}, map[string]app.Model{}
	for _, t := range threads {
		if t.Turns == 0 || t.Ephemeral {
			continue
		}
		name := cmp.Or(t.Settings.Provider, s.catalog.provider())
		agents[name] = true
		if m, ok := s.catalog.unlisted(name, t.Settings.Model); ok {
			has[m.ID] = m
		}
	}
	if len(agents) == 0 {
		return models, nil
	}
	out := make([]app.Model, 0, len(models))
	for _, m := range models {
		if name, _, err := s.catalog.pick(m.ID, "", ""); err == nil && agents[cmp.Or(name, s.catalog.provider())] {
			out = append(out, m)
		}
	}
	if len(out) == 0 { // of an agent that is not there any more
		return models, nil
	}
	for _, id := range slices.Sorted(maps.Keys(has)) {
		out = append(out, has[id])
	}
	return oneDefault(out), nil
}
