package daemon

import (
	"cmp"
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/daemon/wire"
)

// Sessions answers the methods about managed sessions.
type Sessions struct {
	Keeper *keeper.Keeper
	// Probe asks the channel why nothing could be delivered now; "" if it could.
	Probe func(ctx context.Context, a attachment.Attachment) string
}

// Methods lists what s answers.
func (s *Sessions) Methods() map[string]Method {
	return map[string]Method{
		wire.SessionOpen:    method(s.open),
		wire.SessionLeave:   method(s.leave),
		wire.SessionList:    method(s.list),
		wire.SessionInspect: method(s.inspect),
	}
}

func (s *Sessions) open(ctx context.Context, actor thole.Actor, p wire.SessionOpenParams) (wire.CodexSession, error) {
	a, err := s.Keeper.Open(ctx, keeper.Open{
		User: actor.User, Home: p.CodexHome, Thread: thole.ThreadID(p.ThreadID), Dir: p.Dir, Codex: p.Program, Env: p.Env, Client: p.ClientPID,
		Trust: attachment.Trust(p.Trust), Kind: attachment.Kind(p.Kind), Address: p.Address, Server: p.ServerPID,
		Wish: attachment.Wishes{Approval: attachment.Wish(p.AllowApproval), Network: attachment.Wish(p.AllowNetwork), Write: attachment.Wish(p.AllowWrite), Pin: p.PinPermissions},
	})
	if err != nil {
		return wire.CodexSession{}, err
	}
	return sessionView(a), nil
}

func (s *Sessions) leave(ctx context.Context, actor thole.Actor, p wire.SessionParams) (wire.CodexSession, error) {
	a, err := s.Keeper.Leave(ctx, actor.User, thole.AttachmentID(p.SessionID))
	if err != nil {
		return wire.CodexSession{}, err
	}
	return sessionView(a), nil
}

func (s *Sessions) list(ctx context.Context, actor thole.Actor, p wire.SessionListParams) ([]wire.CodexSession, error) {
	all, err := s.Keeper.List(ctx, p.All)
	out := []wire.CodexSession{}
	for _, a := range all {
		if a.User == actor.User {
			out = append(out, sessionView(a))
		}
	}
	return out, err
}

// inspect also asks the server.
func (s *Sessions) inspect(ctx context.Context, actor thole.Actor, p wire.SessionParams) (wire.CodexSession, error) {
	id := thole.AttachmentID(p.SessionID)
	a, err := s.Keeper.ByID(ctx, id)
	if err != nil || a.User != actor.User {
		return wire.CodexSession{}, thole.Errorf(thole.CodeNotFound, "no session %s", id).WithHint("thole codex sessions list")
	}
	problem := ""
	if a.Usable() {
		problem = s.Probe(ctx, a)
		if a, err = s.Keeper.ByID(ctx, id); err != nil { // the probe saw permissions
			return wire.CodexSession{}, err
		}
	}
	v := sessionView(a)
	if problem != "" {
		v.Problem = problem
	}
	return v, nil
}

func sessionView(a attachment.Attachment) wire.CodexSession {
	v := wire.CodexSession{
		ID: string(a.ID), State: string(a.State), Kind: string(a.Kind), ThreadID: string(a.Thread), CodexHome: a.Home, Address: a.Address,
		Epoch: a.Epoch, ServerPID: a.Process.PID, ServerAlive: a.Process.Alive() == nil, ClientPID: a.Client.PID, Trust: string(a.Trust), Pins: a.Wish.Pin, Pinned: a.Pinned != nil,
		Revision: a.Revision, Note: a.Note, CreatedAt: a.Created, UpdatedAt: a.Updated,
		Startup: permissionsView(a.Cap), Current: permissionsView(a.Current),
	}
	if t := a.Active; t != nil && a.Usable() {
		v.Active = &wire.ActiveTurn{
			Turn: t.Turn, Kind: cmp.Or(t.Kind, "unknown"), Approval: cmp.Or(t.Approval, "unknown"), Network: cmp.Or(t.Network, "unknown"),
			Write: cmp.Or(t.Write, "unknown"), Risk: t.Risk, Steerable: t.Steerable, Epoch: t.Epoch, At: t.At,
		}
	}
	if a.Cap != nil && a.Current != nil {
		effective := a.Cap.Effective(*a.Current)
		v.Effective = permissionsView(&effective)
		v.Drift = attachment.Drift(*a.Cap, *a.Current)
	}
	again := "thole codex run --bind-thread-id " + string(a.Thread)
	switch a.State {
	case attachment.Pending:
		v.Problem = "no thread was made in the terminal yet"
	case attachment.Parked:
		v.Problem, v.Next = "session_pending_manual_resolution", "thole batch inspect-head --source-thread-id "+string(a.Thread)
	case attachment.Stale:
		v.Problem, v.Next = "its server is gone", again
		if a.Process.Zero() {
			v.Problem, v.Next = a.Note, ""
		}
	case attachment.Detached:
		v.Problem, v.Next = "its terminal has ended", again
	}
	return v
}

func permissionsView(s *attachment.PermissionSnapshot) *wire.Permissions {
	if s == nil {
		return nil
	}
	return &wire.Permissions{Approval: s.Approval, Network: s.Network, Write: s.Write, Roots: s.Roots, Policy: s.Policy, Sandbox: s.Sandbox}
}
