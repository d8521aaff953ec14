package thread

import (
	"cmp"
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/unguarded"
)

// Access says to which threads an actor may do something.
type Access func(ctx context.Context, actor thole.Actor, action authz.Action) (authz.Scope, error)

// ownThreads is the access rule without a platform: everybody has their own threads and
// the program itself has all.
func ownThreads(_ context.Context, a thole.Actor, _ authz.Action) (authz.Scope, error) {
	return authz.Own(a), nil
}

// actions are what the steps of a thread are to who may take them. A step that is not
// here is the program's alone.
var actions = map[string]authz.Action{
	"thread.answer":  authz.AnswerAsk,
	"thread.compact": authz.DeleteThread, "thread.delete": authz.DeleteThread,
	"thread.fork": authz.RunThread, "thread.revert": authz.RunThread, "thread.update": authz.RunThread, "thread.start_turn": authz.RunThread, "thread.steer": authz.RunThread, "thread.interrupt": authz.RunThread,
	"thread.enqueue": authz.RunThread, "thread.edit_queued": authz.RunThread, "thread.remove_queued": authz.RunThread, "thread.reorder_queued": authz.RunThread,
	"thread.start_queued": authz.RunThread, "thread.promote_queued": authz.RunThread,
	"thread.set_goal": authz.RunThread, "thread.report_goal": authz.RunThread, "thread.clear_goal": authz.RunThread,
}

// may refuses an actor who must not do this to a thread of that owner, or what the request
// wants to do (authz.Doing). What they cannot see is not there for them.
func (m *Machine) may(ctx context.Context, actor thole.Actor, action authz.Action, owner thole.Owner, id thole.ThreadID) error {
	if unguarded.Build {
		return nil
	}
	for i, a := range [...]authz.Action{authz.ViewThread, action, authz.DoneBy(ctx)} {
		if i > 0 && a == authz.ViewThread || i == 2 && (a == "" || a == action) {
			continue
		}
		switch scope, err := m.cfg.Access(ctx, actor, a); {
		case err != nil:
			return failed("read rights", err)
		case scope.Sees(owner):
		case a == authz.ViewThread:
			if !authz.Sifts(ctx) {
				m.cfg.Hidden(ctx, actor, cmp.Or(authz.DoneBy(ctx), action), owner, id)
			}
			return errNoThread(id)
		default:
			return thole.Errorf(thole.CodeForbidden, "this needs the right to %s in thread %s", a, id).WithHint("ask its owner, or who runs this server")
		}
	}
	return nil
}

func errNoThread(id thole.ThreadID) error {
	return thole.Errorf(thole.CodeNotFound, "thread not found: %s", id).WithHint("thole thread list shows the threads")
}

func errNoTurn(id thole.TurnID) error {
	return thole.Errorf(thole.CodeNotFound, "turn not found: %s", id)
}
