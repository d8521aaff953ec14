package artifact_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/powerloss"
)

type recorded struct{ *powerloss.Disk }

func (r recorded) Create(path string, perm os.FileMode) (artifact.File, error) {
	return r.Disk.Create(path, perm)
}

// TestCompleteSurvivesPowerLoss cuts the power at every operation of job complete:
// a completion that was acknowledged has its bytes, whatever the disk lost.
func TestCompleteSurvivesPowerLoss(t *testing.T) {
	const job = thole.JobID("00000000-0000-7000-8000-0000000000aa")
	content := strings.Repeat("result ", 3000)
	open := func(dir, vfs string) (*store.DB, *delivery.Machine, *artifact.Keeper, error) {
		db, err := store.Open(ctx, sqldb.Config{Path: filepath.Join(dir, "thole.db"), VFS: vfs})
		if err != nil {
			return nil, nil, nil, err
		}
		k, err := artifact.New(artifact.Config{Dir: filepath.Join(dir, "artifacts"), Store: db.Artifacts()})
		return db, delivery.New(delivery.Config{Store: db.Delivery(), Limits: delivery.DefaultLimits()}), k, err
	}
	powerloss.Enumerate(t, 0, func(d *powerloss.Disk) error {
		db, m, _, err := open(d.Dir, d.VFS)
		if err != nil {
			return err
		}
		defer db.Close()
		k, err := artifact.New(artifact.Config{Dir: filepath.Join(d.Dir, "artifacts"), Store: db.Artifacts(), Disk: recorded{d}})
		if err != nil {
			return err
		}
		_, _, err = m.Submit(ctx, thole.LocalActor, delivery.Submit{
			ID: job, Owner: thole.DefaultOwner, Target: thole.TargetThole, Address: delivery.Address{User: thole.LocalUser, Thread: "a"},
		})
		if err != nil {
			return err
		}
		d.Start()
		d.Ack("submitted")
		in, err := k.IngestReader(ctx, strings.NewReader(content), "r.txt", job, thole.DefaultOwner, time.Now())
		if err != nil {
			return err
		}
		if _, err := m.Finish(ctx, thole.LocalActor, delivery.Finish{Job: job, State: thole.JobReady, Result: &in.Record, ArtifactOnly: in.ReadNeeded}); err != nil {
			return err
		}
		d.Ack("completed")
		return nil
	}, func(dir string, acked []string) error {
		db, m, k, err := open(dir, "")
		if err != nil {
			return err
		}
		defer db.Close()
		j, _, err := m.Job(ctx, thole.LocalActor, job)
		if err != nil {
			return err
		}
		if len(acked) == 2 && j.State != thole.JobReady {
			return thole.Errorf(thole.CodeInternal, "an acknowledged completion was lost: %s", j.State)
		}
		if j.State != thole.JobReady {
			return nil
		}
		r, err := k.Get(ctx, thole.LocalActor, j.Artifact)
		if err != nil {
			return err
		}
		return k.Verify(r)
	})
}
