package branch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
)

const (
	// unborn is how long a source is held whose thread is not there: it is created after
	// its source was resolved.
	unborn = time.Hour
	// unused is how long a mirror is kept that no thread needs: a fetch of it would have to
	// start over.
	unused     = 7 * 24 * time.Hour
	sweepEvery = time.Hour
)

// SweepAlways sweeps until ctx ends.
func (b *Branches) SweepAlways(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		if err := b.Sweep(ctx); err != nil && ctx.Err() == nil {
			b.cfg.Log.Warn("let go of repositories that no thread needs", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Sweep lets go of what no thread needs any more: refs in repositories, carried files,
// and mirrors.
func (b *Branches) Sweep(ctx context.Context) error {
	records, err := b.records()
	if err != nil || len(records) == 0 && !b.mirrored() {
		return err
	}
	alive, err := b.cfg.Alive(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, rec := range records {
		needed := slices.ContainsFunc(alive, func(s thole.Source) bool { return same(s, rec.Source) })
		if needed || b.cfg.Now().Sub(rec.At) < unborn {
			continue
		}
		failed = errors.Join(failed, b.release(ctx, rec))
	}
	return errors.Join(failed, b.dropMirrors(ctx))
}

func (b *Branches) mirrored() bool {
	entries, err := os.ReadDir(b.dir())
	return err == nil && len(entries) > 0
}

// dropMirrors removes mirrors that hold nothing and were not fetched for a while, and what
// a crash left.
func (b *Branches) dropMirrors(ctx context.Context) error {
	entries, err := os.ReadDir(b.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var failed error
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".git"); ok {
			failed = errors.Join(failed, b.dropMirror(ctx, name))
		}
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), deskName) && b.cfg.Now().Sub(info.ModTime()) > unborn {
			failed = errors.Join(failed, os.RemoveAll(b.dir(e.Name())))
		}
	}
	return failed
}

func (b *Branches) dropMirror(ctx context.Context, name string) error {
	defer b.lock(name)()
	records, err := b.records() // those of a thread that is being made are there by now
	if err != nil {
		return err
	}
	at := b.mirror(name)
	st, err := os.Stat(filepath.Join(at, used))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil && b.cfg.Now().Sub(st.ModTime()) < unused || slices.ContainsFunc(records, func(r record) bool { return r.Mirror == name }) {
		return b.tidy(ctx, at)
	}
	return os.RemoveAll(at)
}

// maxPacks is how many packs a mirror has before they are made one: each fetch adds one.
const maxPacks = 20

// tidy removes what a fetch that broke off left in a mirror, and makes few packs of many.
// Objects stay, also those that nothing refers to: an agent's own may.
func (b *Branches) tidy(ctx context.Context, at string) error {
	for _, pattern := range []string{"pack-*", "objects/pack/tmp_*", "objects/incoming-*", "objects/tmp_*"} {
		left, err := filepath.Glob(filepath.Join(at, pattern))
		if err != nil {
			return err
		}
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	packs, err := filepath.Glob(filepath.Join(at, "objects/pack/*.pack"))
	if err != nil || len(packs) <= maxPacks {
		return err
	}
	_, err = b.cfg.Git.Own(ctx, at, "repack", "-a", "-d", "-k", "-q")
	return err
}
