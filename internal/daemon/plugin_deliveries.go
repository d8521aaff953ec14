package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/plugin"
)

// enqueue takes a result and what it is delivered by in one step. The same key is the same
// result, whichever process of the plugin repeats it.
func (s *Plugins) enqueue(ctx context.Context, actor thole.Actor, p wire.EnqueueParams) (wire.Enqueued, error) {
	in, err := s.caller(ctx, actor)
	if err != nil {
		return wire.Enqueued{}, err
	}
	if err := checkName("idempotency_key", p.Key); err != nil {
		return wire.Enqueued{}, err
	}
	if p.Payload != "" && p.ResultFile != "" || p.Payload == "" && p.ResultFile == "" && p.Summary == "" {
		return wire.Enqueued{}, thole.Errorf(thole.CodeInvalid, "delivery enqueue: give a payload or a result_file, or a summary alone")
	}
	if p.ResultFile != "" && !filepath.IsAbs(p.ResultFile) {
		return wire.Enqueued{}, thole.Errorf(thole.CodeInvalid, "result_file %q is not an absolute path", p.ResultFile)
	}
	policy, err := normalize(p.Policy, p.Metadata)
	if err != nil {
		return wire.Enqueued{}, err
	}
	id, digest := plugin.Job(actor.User, in.Plugin, p.Key), digestOf(p)
	have, _, err := s.Machine.Job(ctx, actor, id)
	if err == nil {
		return s.again(ctx, have, digest)
	}
	if thole.CodeOf(err) != thole.CodeNotFound {
		return wire.Enqueued{}, err
	}
	addr, target, err := s.resolve(ctx, actor, in, p)
	if err != nil {
		return wire.Enqueued{}, err
	}
	target.Digest = digest
	owner := thole.DefaultOwner
	owner.User = actor.User
	f := delivery.Finish{Job: id, State: thole.JobReady, Summary: p.Summary, Request: string(id)}
	if p.Failed {
		f.State = thole.JobFailed
	}
	if err := s.take(ctx, owner, id, p, &f); err != nil {
		return wire.Enqueued{}, err
	}
	kind := p.TaskKind
	if kind == "" {
		kind = "plugin"
	}
	j, fresh, err := s.Machine.Enqueue(ctx, actor, delivery.Submit{
		ID: id, Owner: owner, Address: addr, Target: thole.TargetCLI, TaskKind: kind, Summary: p.Summary, Metadata: string(p.Metadata), Policy: policy, Plugin: target,
	}, f)
	if f.Result != nil && (err != nil || j.Artifact != f.Result.ID) && !s.Unsure(err) {
		s.Results.Discard(*f.Result)
	}
	if err != nil {
		return wire.Enqueued{}, err
	}
	if !fresh {
		return s.again(ctx, j, digest)
	}
	return s.enqueued(ctx, j, false), nil
}

// again answers a repeated enqueue.
func (s *Plugins) again(ctx context.Context, j delivery.Job, digest string) (wire.Enqueued, error) {
	if j.Plugin == nil || j.Plugin.Digest != digest {
		return wire.Enqueued{}, thole.Errorf(thole.CodeConflict, "delivery enqueue: the idempotency_key was used for another result, job %s", j.ID).
			WithHint("a key names one result for good")
	}
	return s.enqueued(ctx, j, true), nil
}

func (s *Plugins) enqueued(ctx context.Context, j delivery.Job, again bool) wire.Enqueued {
	brings := j.Plugin
	if !brings.Owned() {
		brings = nil
	}
	addr := delivery.Address{User: j.Owner.User, Endpoint: j.Endpoint, Thread: j.Thread}
	return wire.Enqueued{
		Key: j.Plugin.Key, JobID: string(j.ID), BatchID: string(j.Batch), AcceptedAt: j.CreatedAt, Deduplicated: again, Target: targetView(j.Plugin),
		Delivery: s.Forecast(ctx, addr, j.Policy, brings),
	}
}

// resolve decides what a result is delivered by. A lease is proven to be the instance's and
// the thread's; what the plugin believes of it must be so.
func (s *Plugins) resolve(ctx context.Context, actor thole.Actor, in *plugin.Instance, p wire.EnqueueParams) (delivery.Address, *thole.PluginTarget, error) {
	t := &thole.PluginTarget{Plugin: in.Plugin, Key: p.Key, Thread: thole.ThreadID(p.ThreadID)}
	bad := func(format string, args ...any) (delivery.Address, *thole.PluginTarget, error) {
		return delivery.Address{}, nil, thole.Errorf(thole.CodeInvalid, "delivery enqueue: "+format, args...)
	}
	if p.Target.LeaseID != "" {
		if p.Target.ServerProfile != (wire.ServerProfile{}) {
			return bad("a target is a lease, or what a server is started with")
		}
		l, a, err := s.lease(ctx, in, p.Target.LeaseID)
		if err != nil {
			return delivery.Address{}, nil, err
		}
		switch {
		case l.Thread != t.Thread:
			err = thole.Errorf(thole.CodeConflict, "lease %s is bound to thread %s, not %s", l.ID, l.Thread, t.Thread)
		case p.Target.SessionID != "" && p.Target.SessionID != string(a.ID):
			err = thole.Errorf(thole.CodeConflict, "lease %s is of session %s, not %s", l.ID, a.ID, p.Target.SessionID)
		case p.Target.Epoch != 0 && p.Target.Epoch != a.Epoch:
			err = thole.Errorf(thole.CodeConflict, "session %s is in epoch %d, not %d", a.ID, a.Epoch, p.Target.Epoch)
		}
		t.Ownership, t.Lease, t.Session, t.Epoch, t.Program = thole.OwnershipExplicit, l.ID, a.ID, a.Epoch, a.Program
		return delivery.Address{User: actor.User, Endpoint: l.Endpoint, Thread: l.Thread}, t, err
	}
	if p.Target.SessionID != "" || p.Target.Epoch != 0 {
		return bad("managed_session_id and session_epoch say something of a lease, and none is named")
	}
	if !s.Alone {
		return delivery.Address{}, nil, thole.Errorf(thole.CodeUnsupported, "delivery enqueue: several servers share this store, so no delivery can bring its app-server").
			WithHint("lease one: %s", wire.AppServerEnsure)
	}
	program, dir, err := serverProgram(p.Target.ServerProfile)
	if err != nil {
		return delivery.Address{}, nil, err
	}
	home, err := codexHomeOf(p.Target.CodexHome)
	if err != nil {
		return delivery.Address{}, nil, err
	}
	addr := delivery.Address{User: actor.User, Endpoint: home, Thread: t.Thread}
	if err := s.Known(ctx, addr, thole.TargetCLI); err != nil {
		return delivery.Address{}, nil, err
	}
	t.Ownership, t.Epoch = thole.OwnershipDelivery, 1
	t.Lease, t.Session = plugin.OwnedLease(actor.User, in.Plugin, t.Thread, p.Key), plugin.OwnedSession(actor.User, in.Plugin, t.Thread, p.Key)
	t.Program, t.Dir, t.Approval, t.Network, t.Write = program, dir, p.Target.AllowApproval, p.Target.AllowNetwork, p.Target.AllowWrite
	if t.Trust = p.Target.Trust; t.Trust == "" {
		t.Trust = string(attachment.StrictSafe)
	}
	return addr, t, nil
}

// take makes the result durable before the job may be there: a small text travels inside
// the delivery, anything else is an artifact.
func (s *Plugins) take(ctx context.Context, owner thole.Owner, id thole.JobID, p wire.EnqueueParams, f *delivery.Finish) (err error) {
	var r artifact.Ingested
	switch {
	case p.ResultFile != "":
		r, err = s.Results.Ingest(ctx, p.ResultFile, id, owner, s.now())
	case len(p.Payload) > artifact.InlineMax:
		r, err = s.Results.IngestReader(ctx, strings.NewReader(p.Payload), "payload.txt", id, owner, s.now())
	default:
		f.Inline = p.Payload
		return nil
	}
	if err == nil {
		f.Result, f.Inline, f.ArtifactOnly = &r.Record, r.Inline, r.ReadNeeded
	}
	return err
}

// digestOf is of everything that a key stands for. What it is delivered by is not part of
// it: the plugin's next process has another lease.
func digestOf(p wire.EnqueueParams) string {
	p.Target = wire.EnqueueTarget{}
	body, _ := json.Marshal(p) // of strings, booleans and a document that was read as one
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// inspect shows a delivery of the plugin's, whichever of its processes handed it in, and has
// the daemon look at once at what is under way.
func (s *Plugins) inspect(ctx context.Context, actor thole.Actor, p wire.DeliveryInspectParams) (wire.DeliveryState, error) {
	in, err := s.caller(ctx, actor)
	if err != nil {
		return wire.DeliveryState{}, err
	}
	id := plugin.Job(actor.User, in.Plugin, p.Key)
	j, b, err := s.Machine.Job(ctx, actor, id)
	if thole.CodeOf(err) == thole.CodeNotFound || err == nil && j.Plugin == nil {
		return wire.DeliveryState{}, thole.Errorf(thole.CodeNotFound, "plugin %q handed in nothing with the idempotency_key %q", in.Plugin, p.Key)
	}
	if err != nil {
		return wire.DeliveryState{}, err
	}
	s.Reconcile()
	v, err := s.Query(ctx, actor, wire.JobParams{JobID: string(id)})
	if err != nil {
		return wire.DeliveryState{}, err
	}
	out := wire.DeliveryState{Key: p.Key, State: "pending", Target: targetView(j.Plugin), Job: v}
	switch {
	case b == nil:
	case b.CloseReason == thole.CloseDelivered:
		out.State = "delivered"
	case b.State == thole.BatchClosed:
		out.State = "closed"
	case b.Replay == thole.ReplayManual:
		out.State = "held"
	case v.Batch != nil && inFlight(v.Batch.Attempts):
		out.State = "in_flight"
	}
	return out, nil
}

func inFlight(attempts []wire.Attempt) bool {
	for _, a := range attempts {
		if s := thole.AttemptState(a.State); s.Barrier() || s == thole.AttemptCooldown {
			return true
		}
	}
	return false
}

func targetView(t *thole.PluginTarget) wire.PluginTarget {
	return wire.PluginTarget{
		Ownership: string(t.Ownership), LeaseID: t.Lease, SessionID: string(t.Session), ThreadID: string(t.Thread), Epoch: t.Epoch,
		CodexBinary: t.Program, Plugin: t.Plugin, Key: t.Key,
	}
}
