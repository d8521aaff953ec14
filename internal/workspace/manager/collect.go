package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
)

// Collected counts what a collection removed.
type Collected struct {
	Snapshots int
	Objects   int
	Bytes     int64
}

// Collect removes snapshots that no thread has been at for the grace period, and
// objects older than it that no snapshot needs. A thread that was deleted, and its
// executor, is at none. Heads of forks, turns of the last
// workspace.TurnsKept and running restores hold their snapshots.
//
// It cannot take an object that a running sync relies on: a sync uses objects of
// the snapshot it began from, which it must still find as the thread's when it
// commits, and its own new ones, whose keys nobody else ever writes and which are
// younger than the grace period.
func (m *Manager) Collect(ctx context.Context, grace time.Duration) (c Collected, err error) {
	if grace < 2*linkTTL {
		return c, thole.Errorf(thole.CodeInvalid, "a grace period of %s could meet a sync that is still running", grace).WithHint("use at least %s", 2*linkTTL)
	}
	now, err := m.cfg.Rows.Now(ctx)
	if err != nil {
		return c, err
	}
	before := now.Add(-grace)
	for {
		n, err := m.cfg.Rows.Prune(ctx, before, now.Add(-workspace.TurnsKept), 100)
		if err != nil {
			return c, fmt.Errorf("drop old snapshots: %w", err)
		}
		if c.Snapshots += n; n < 100 {
			break
		}
	}
	for _, prefix := range []string{"app/", "session/"} {
		if err := m.collectObjects(ctx, prefix, before, &c); err != nil {
			return c, fmt.Errorf("collect objects: %w", err)
		}
	}
	return c, nil
}

func (m *Manager) collectObjects(ctx context.Context, prefix string, before time.Time, c *Collected) error {
	for after := ""; ; {
		page, err := m.cfg.Objects.List(ctx, prefix, after, 1000)
		if err != nil {
			return err
		}
		sizes := map[string]int64{}
		var keys []string
		for _, info := range page {
			after = info.Key
			if ofSnapshot(info.Key) && info.Modified.Before(before) {
				keys = append(keys, info.Key)
				sizes[info.Key] = info.Size
			}
		}
		free, err := m.cfg.Rows.Unreferenced(ctx, keys)
		if err != nil {
			return err
		}
		for _, key := range free {
			if derr := m.cfg.Objects.Delete(ctx, key); derr != nil {
				err = errors.Join(err, derr)
				continue
			}
			c.Objects++
			c.Bytes += sizes[key]
		}
		if err != nil || len(page) < 1000 {
			return err
		}
	}
}

// ofSnapshot reports whether a key is one that a sync made. Everything else in
// the store, knowledge and user files above all, is not ours to collect.
func ofSnapshot(key string) bool {
	at := strings.Split(key, "/")
	n := len(at)
	return n >= 6 && at[n-3] == "snapshots" && at[n-4] == "workspace" && at[n-6] == "session" && thole.ValidUUID(at[n-2])
}
