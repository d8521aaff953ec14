package executord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// A workspace is set up once, before its first agent, as the repository says (recipe.go).
// The repository is not the user: its setup runs in the box, with the thread's network
// and limits, and only where the profile lets an agent run commands, or after a yes.

// setupTimeout is how long a setup may take where nobody says.
const setupTimeout = 10 * time.Minute

// maxTold is how much of a setup's output the agent is sent.
const maxTold = 4 << 10

// setupMark is the file next to the conversations that says that the workspace was set
// up. It travels with them, so that a restored workspace is not set up again.
const setupMark = "setup.json"

// setUp sets the workspace up if that is due, and returns what the agent must know of
// it before its message. An error ends the turn.
func (r *run) setUp(ctx context.Context, s *Server, req wire.RunRequest, emit func(event.Event)) ([]thole.Input, error) {
	if !s.cfg.Tools.Setup.Auto || does(req, thole.ProfilePlan) || s.marked() {
		return nil, nil
	}
	found, err := findRecipe(s.cfg.Dirs.Workspace)
	if err != nil {
		emit(noteEvent(req.Turn.ID, s.now(), "setup", "the workspace was not set up: "+err.Error()))
	}
	if err != nil || found.line == "" {
		s.mark(found, "none")
		return nil, nil //nolint:nilerr // the note says it
	}
	full := does(req, thole.ProfileFull)
	if !full && !found.ours {
		emit(noteEvent(req.Turn.ID, s.now(), "setup", fmt.Sprintf("the workspace was not set up as %s says: the profile asks before commands. `thole thread setup %s` does it", found.file, req.Thread)))
		s.mark(found, "none")
		return nil, nil
	}
	em := provider.NewEmitter(req.Turn.ID, emit)
	item := s.setupItem(em, found)
	em.Start(item)
	if !full {
		answer, err := r.permit(ctx, em, found, item)
		if err != nil {
			em.Cut(item.ID, event.StateFailed)
			return nil, err
		}
		if answer.Decision != event.DecisionAllow && answer.Decision != event.DecisionAlways {
			item.State = event.StateDeclined
			em.Complete(item)
			s.mark(found, "declined")
			return thole.Text("Before this message thole would have run the repository's setup (" + found.file + "); the user declined.\n\n"), nil
		}
	}
	end, err := s.runSetup(ctx, em, item)
	if err != nil {
		return nil, err
	}
	if end == "" {
		s.mark(found, "done")
		return nil, nil
	}
	s.mark(found, "failed")
	return thole.Text("Before this message thole ran the repository's setup (" + found.file + "), which failed:\n\n$ " + found.line + "\n" + end + "\n\n"), nil
}

// setUpByHand takes the command turn of that name to its end.
func (s *Server) setUpByHand(ctx context.Context, turn thole.TurnID, emit func(event.Event)) error {
	found, err := findRecipe(s.cfg.Dirs.Workspace)
	if err == nil && found.line == "" {
		err = thole.Errorf(thole.CodeInvalid, "the workspace has no setup: %w", provider.ErrUnsupported).WithHint("commit a script as .thole/setup")
	}
	if err != nil {
		return err
	}
	em := provider.NewEmitter(turn, emit)
	item := s.setupItem(em, found)
	em.Start(item)
	end, err := s.runSetup(ctx, em, item)
	if err != nil {
		em.End(provider.Ended{Outcome: thole.OutcomeInterrupted})
		return nil //nolint:nilerr // the turn's end says it
	}
	s.mark(found, map[bool]string{true: "done", false: "failed"}[end == ""])
	em.End(provider.Ended{Outcome: thole.OutcomeCompleted})
	return nil
}

func (s *Server) setupItem(em *provider.Emitter, found recipe) event.Item {
	return event.Item{ID: em.ItemID("thole/setup"), Kind: event.ItemCommand, Command: &event.Command{Line: found.line, Dir: s.cfg.Dirs.Workspace, User: true}}
}

var errSlowSetup = errors.New("the setup took too long")

// runSetup runs an item that was started, and returns how it failed, "" if it did not.
// An error means that the turn ended meanwhile.
func (s *Server) runSetup(ctx context.Context, em *provider.Emitter, item event.Item) (string, error) {
	limit := s.cfg.Tools.Setup.Timeout
	if limit <= 0 {
		limit = setupTimeout
	}
	in, err := s.boxes.shared()
	if err != nil {
		em.Cut(item.ID, event.StateFailed)
		return "", err
	}
	within, cancel := context.WithTimeoutCause(ctx, limit, errSlowSetup)
	defer cancel()
	env := s.environ()
	env["DEBIAN_FRONTEND"], env["MISE_YES"] = "noninteractive", "1"
	exit := 0
	out, err := em.Shell(within, item, env, in, func(code int) { exit = code })
	switch {
	case ctx.Err() != nil:
		em.Cut(item.ID, event.StateFailed)
		return "", context.Cause(ctx)
	case err != nil:
		em.Delta(item.ID, event.StreamOutput, fmt.Sprintf("\nstopped: it took longer than %s (executor.setup_timeout)\n", limit))
		em.Cut(item.ID, event.StateFailed)
		return fmt.Sprintf("it was stopped after %s", limit), nil
	case exit == 0:
		return "", nil
	}
	if out = strings.TrimRight(out, "\n"); len(out) > maxTold {
		out = "…" + strings.ToValidUTF8(out[len(out)-maxTold:], "")
	}
	return strings.TrimLeft(fmt.Sprintf("%s\n(exit code %d)", out, exit), "\n"), nil
}

// permit asks the user whether a setup may run.
func (r *run) permit(ctx context.Context, em *provider.Emitter, found recipe, item event.Item) (event.Answer, error) {
	ask := event.Ask{ID: em.AskID("thole/setup"), Kind: event.AskCommand, Item: item.ID, Title: "Set the workspace up", Command: found.line, Dir: item.Command.Dir,
		Reason:    "the repository says so in " + found.file + "; it runs once, in the agent's box",
		Decisions: []event.Decision{event.DecisionAllow, event.DecisionDeny, event.DecisionCancel}}
	g := &gate{ask: ask.ID, given: make(chan event.Answer, 1)}
	r.mu.Lock()
	r.session = g
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.session = nil
		r.mu.Unlock()
	}()
	em.Ask(ask)
	select {
	case <-ctx.Done():
		em.Resolve(ask.ID, nil)
		return event.Answer{}, context.Cause(ctx)
	case answer := <-g.given:
		em.Resolve(ask.ID, &answer)
		if answer.Decision == event.DecisionCancel {
			return answer, context.Canceled
		}
		return answer, nil
	}
}

// gate stands where the agent's session will be while the user is asked: it takes the
// answer and nothing else.
type gate struct {
	ask   thole.AskID
	given chan event.Answer // of one
}

var _ provider.Session = (*gate)(nil)

// Answer implements provider.Session.
func (g *gate) Answer(_ context.Context, ask thole.AskID, answer event.Answer) error {
	if ask == g.ask {
		select {
		case g.given <- answer:
			return nil
		default:
		}
	}
	return provider.ErrSettled
}

// Stop implements provider.Session: the run is cancelled instead.
func (g *gate) Stop(context.Context) error { return provider.ErrUnsupported }

// Defer implements provider.Session: the question is asked again when the turn is taken up.
func (g *gate) Defer(context.Context, thole.AskID) error { return provider.ErrUnsupported }

// Steer implements provider.Session: the agent takes messages when it is there.
func (g *gate) Steer(context.Context, []thole.Input, string) error { return provider.ErrNoTurn }

// Run implements provider.Session.
func (g *gate) Run(context.Context, provider.Turn, func(event.Event)) error {
	return provider.ErrUnsupported
}

// NativeID implements provider.Session.
func (g *gate) NativeID() string { return "" }

// Close implements provider.Session.
func (g *gate) Close() error { return nil }

// marked reports whether the workspace was set up. What an agent writes there at most
// has its own box set up once more, or never.
func (s *Server) marked() bool {
	root, err := beneath.Trusted(s.cfg.Dirs.Data)
	if err != nil {
		return false
	}
	defer root.Close()
	dir, name, err := root.Parent("thole/"+setupMark, false)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer dir.Close()
	_, err = dir.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// mark records how the setup went.
func (s *Server) mark(found recipe, state string) {
	if err := s.writeMark(found, state); err != nil {
		s.logger.Warn("the setup is not recorded and will run again", "err", err)
	}
}

func (s *Server) writeMark(found recipe, state string) error {
	root, err := beneath.Trusted(s.cfg.Dirs.Data)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Claim("thole", 0o700); err != nil {
		return err
	}
	dir, err := root.Sub("thole")
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.RemoveAll(setupMark); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := dir.Create(setupMark, 0o600)
	if err != nil {
		return err
	}
	err = json.NewEncoder(f).Encode(map[string]any{"file": found.file, "state": state, "at": s.now().UTC()})
	return errors.Join(err, f.Close())
}
