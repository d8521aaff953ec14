package branch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// record is what the server keeps of a source that it resolved. It is written before
// anything is held in a repository and removed after that was let go of, so that no ref
// that thole wrote is ever forgotten.
type record struct {
	Thread thole.ThreadID
	Source thole.Source
	At     time.Time
	// GitDir is the git directory that has the thread's ref; UID is its owner, 0 for our
	// own user.
	GitDir string
	UID    int    `json:",omitempty"`
	Mirror string `json:",omitempty"` // its name, where GitDir is one

	Format      string   // of object names: sha1 or sha256
	User, Email string   `json:",omitempty"` // who commits
	Origin      string   `json:",omitempty"` // where the repository comes from
	Remote      string   `json:",omitempty"` // what it calls that, "" for origin
	Shallow     []string `json:",omitempty"` // where its history is cut off
	Sparse      string   `json:",omitempty"` // patterns of what it shows
	Cone        bool     `json:",omitempty"` // how they are written
	Partial     bool     `json:",omitempty"` // some objects are only at Origin
}

const (
	held    = "held"
	carried = "carried"
)

func heldRef(id thole.ThreadID) string { return "refs/thole/base/" + string(id) }

// hold records what was resolved, and holds it: the commit in its repository, and what
// more makes.
func (b *Branches) hold(ctx context.Context, rec *record, more func(context.Context) error) error {
	if err := b.elsewhere(ctx, rec); err != nil {
		return err
	}
	if old, err := b.read(rec.Thread); err == nil && old.GitDir != rec.GitDir {
		if err := b.release(ctx, old); err != nil {
			return err
		}
	}
	if err := b.write(rec); err != nil {
		return err
	}
	if err := b.cfg.Step("branch.record"); err != nil {
		return err
	}
	if err := b.setRef(ctx, rec, "update-ref", heldRef(rec.Thread), rec.Source.Commit); err != nil {
		_ = b.release(ctx, *rec)
		return thole.Errorf(thole.CodeUnavailable, "keep commit %s from being collected in %s: %w", short(rec.Source.Commit), rec.GitDir, err).
			WithHint("thole writes one ref there; where it may not, --repo file://%s copies the repository instead", rec.Source.Repo)
	}
	if err := b.cfg.Step("branch.hold"); err != nil {
		return err
	}
	if err := more(ctx); err != nil {
		return errors.Join(err, b.release(context.WithoutCancel(ctx), *rec))
	}
	return b.write(rec)
}

func (b *Branches) write(rec *record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir(held), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(b.dir(held, string(rec.Thread)+".json"), data, 0o600)
}

// setRef changes the thread's ref: in a repository of the user in a box, in a mirror here.
func (b *Branches) setRef(ctx context.Context, rec *record, args ...string) error {
	var err error
	if rec.Mirror != "" {
		_, err = b.cfg.Git.Own(ctx, rec.GitDir, args...)
	} else {
		show := objectsOf(rec)
		_, err = b.cfg.Git.Run(ctx, git.Cmd{Dir: rec.GitDir, Args: args, Show: show, Write: []string{rec.GitDir}, Env: map[string]string{"GIT_DIR": rec.GitDir, "GIT_WORK_TREE": rec.GitDir}, UID: rec.UID})
	}
	return err
}

// objectsOf are the directories that a box shows besides the repository itself: those that
// are there.
func objectsOf(rec *record) (dirs []string) {
	for _, dir := range rec.Source.Objects {
		if _, err := os.Stat(dir); err == nil && !beneath.Within(dir, rec.GitDir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// release lets go of what a record holds, then of the record. A repository that is gone
// holds nothing.
func (b *Branches) release(ctx context.Context, rec record) error {
	if _, err := os.Stat(rec.GitDir); err == nil {
		if err := b.setRef(ctx, &rec, "update-ref", "-d", heldRef(rec.Thread)); err != nil {
			return fmt.Errorf("let go of %s: %w", rec.GitDir, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := b.cfg.Step("branch.release"); err != nil {
		return err
	}
	if err := os.RemoveAll(b.dir(carried, string(rec.Thread)+".git")); err != nil {
		return err
	}
	err := os.Remove(b.dir(held, string(rec.Thread)+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// records are all that is held.
func (b *Branches) records() ([]record, error) {
	entries, err := os.ReadDir(b.dir(held))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []record
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !thole.ValidUUID(name) {
			continue
		}
		rec, err := b.read(thole.ThreadID(name))
		if err != nil {
			return nil, err
		}
		all = append(all, rec)
	}
	return all, nil
}

func (b *Branches) read(id thole.ThreadID) (rec record, err error) {
	path := b.dir(held, string(id)+".json")
	data, err := os.ReadFile(path)
	if err == nil {
		err = strictjson.Unmarshal(data, &rec)
	}
	if err != nil {
		err = fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return rec, err
}

// of finds the record of a thread's source: its own, or that of the thread it was forked
// from.
func (b *Branches) of(id thole.ThreadID, s thole.Source) (record, error) {
	rec, err := b.read(id)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return rec, err
	}
	all, err := b.records()
	if err != nil {
		return record{}, err
	}
	for _, rec := range all {
		if same(rec.Source, s) {
			return rec, nil
		}
	}
	return record{}, thole.Errorf(thole.CodeGone, "what thread %s was made from is not recorded in this home", id).
		WithHint("start a new thread from %s", s.Repo)
}

// same reports whether two threads need the same objects.
func same(a, b thole.Source) bool {
	return a.Repo == b.Repo && a.Commit == b.Commit && a.Carried == b.Carried
}
