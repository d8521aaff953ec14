package daemon

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/daemon/wire"
)

func (d *Delivery) lease(ctx context.Context, actor thole.Actor, p wire.ArtifactParams) (wire.Lease, error) {
	l, r, err := d.Keeper.Lease(ctx, actor, thole.ArtifactID(p.ArtifactID))
	if err != nil {
		return wire.Lease{}, err
	}
	return wire.Lease{
		LeaseID: l.ID, Deadline: l.Deadline, ArtifactID: string(r.ID), Name: r.Name, ContentType: r.ContentType, SizeBytes: r.Size, SHA256: r.SHA256,
	}, nil
}

func (d *Delivery) revoke(ctx context.Context, actor thole.Actor, p wire.ArtifactParams) (struct{}, error) {
	return struct{}{}, d.Keeper.Revoke(ctx, actor, p.LeaseID)
}

func (d *Delivery) read(ctx context.Context, actor thole.Actor, p wire.ArtifactParams) (wire.Chunk, error) {
	b, last, err := d.Keeper.Read(ctx, actor, p.LeaseID, p.Offset, p.Limit)
	return wire.Chunk{Offset: p.Offset, Data: b, Last: last}, err
}

func (d *Delivery) pin(ctx context.Context, actor thole.Actor, p wire.ArtifactParams) (wire.Artifact, error) {
	r, err := d.Keeper.Pin(ctx, actor, thole.ArtifactID(p.ArtifactID), p.PinUntil)
	if err != nil {
		return wire.Artifact{}, err
	}
	return d.artifactView(r), nil
}

// inspectArtifact also proves the bytes, because a record alone says nothing of them.
func (d *Delivery) inspectArtifact(ctx context.Context, actor thole.Actor, p wire.ArtifactParams) (wire.Artifact, error) {
	r, err := d.Keeper.Get(ctx, actor, thole.ArtifactID(p.ArtifactID))
	if err != nil {
		return wire.Artifact{}, err
	}
	v := d.artifactView(r)
	if r.RemovedAt.IsZero() {
		if err := d.Keeper.Verify(r); err != nil {
			v.Damage = err.Error()
		}
	}
	return v, nil
}

func (d *Delivery) artifactView(r artifact.Record) wire.Artifact {
	v := wire.Artifact{
		ArtifactID: string(r.ID), SourceJobID: string(r.Job), Name: r.Name, ContentType: r.ContentType, SizeBytes: r.Size, SHA256: r.SHA256,
		ManagedPath: d.Keeper.Path(r), ManifestPath: d.Keeper.ManifestPath(r), CreatedAt: r.CreatedAt, Held: r.Held,
		LastBatchClosed: r.LastClosedAt, OperatorPinUntil: r.PinUntil, RemovedAt: r.RemovedAt,
	}
	if at, ok := r.EligibleAt(d.Keeper.Retention()); ok {
		v.RetentionUntil = at
	}
	return v
}
