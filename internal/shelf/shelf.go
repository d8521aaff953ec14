// Package shelf keeps the states of threads' files as commits and brings changes out:
// it takes checkpoints, compares them, puts one of them back, and writes what a thread
// changed into a directory or a repository of the user. Each thread has a shelf, a bare
// repository that only the server writes.
//
// The files are an agent's, and so is the repository in them. Their git configuration is
// never read: git works on them with a directory of its own (a desk), in a box that shows
// them read-only, and new objects leave the box as a pack that the shelf checks. A user's
// repository, which the user may only have and not have made, is looked at and written in
// a box too. The package decides about no turn: the dispatcher calls it before and after
// each, and when a turn is to be undone.
package shelf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Config makes a Shelf.
type Config struct {
	Dir string // holds all shelves
	Git *git.Runner
	// CoAuthor, "NAME <ADDRESS>", is named in commits that are made of an agent's
	// uncommitted work; "": nobody is.
	CoAuthor string
	// Token is what a person keeps for a server, "" for nothing; nil: nobody keeps any.
	Token func(ctx context.Context, who thole.Owner, host string) (string, error)
	// MaxFile is how many bytes a file may have that a checkpoint takes, default 1 GiB, and
	// MaxFiles how many may differ from the last one, default 1 Mi.
	MaxFile  int64
	MaxFiles int
	Now      func() time.Time
	Log      *slog.Logger
}

// Shelf has the shelves of all threads. Calls for one thread wait for each other; calls
// for different ones do not. Where a call takes a dir, the thread's files are there on
// this machine; with "" they are nowhere now, and the last checkpoint is what they are.
// Files in place are where they are, whatever the dir says.
type Shelf struct {
	cfg Config
	// packing are shelves to pack: calls that end a turn write it, Collect reads it.
	packing chan *one

	mu    sync.Mutex // guards what follows
	locks map[thole.ThreadID]*lock
}

// lock is held while a thread's shelf is used. Waiting ends with a context.
type lock struct {
	held  chan struct{} // one token
	users int           // who hold it or wait for it
}

// New makes a Shelf.
func New(cfg Config) *Shelf {
	if cfg.MaxFile == 0 {
		cfg.MaxFile = 1 << 30
	}
	if cfg.MaxFiles == 0 {
		cfg.MaxFiles = 1 << 20
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Shelf{cfg: cfg, packing: make(chan *one, maxPacking), locks: map[thole.ThreadID]*lock{}}
}

func (s *Shelf) lock(ctx context.Context, id thole.ThreadID) (unlock func(), err error) {
	s.mu.Lock()
	l := s.locks[id]
	if l == nil {
		l = &lock{held: make(chan struct{}, 1)}
		s.locks[id] = l
	}
	l.users++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(s.locks, id)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// one is a thread's shelf, locked.
type one struct {
	*Shelf
	th fold.Thread
	// dir is where the files are on this machine; "": nowhere, and the last checkpoint is all
	// there is.
	dir  string
	bare string // the repository
	desk desk   // for the files, if there are any now
	// user is the repository that the files of a thread that works in place belong to, nil
	// for none.
	user *userRepo
}

// open locks a thread's shelf and makes it if there is none.
func (s *Shelf) open(ctx context.Context, th fold.Thread, dir string) (o *one, done func(), err error) {
	if !thole.ValidUUID(string(th.ID)) {
		return nil, nil, thole.Errorf(thole.CodeInvalid, "thread id %q is not a UUID", th.ID)
	}
	unlock, err := s.lock(ctx, th.ID)
	if err != nil {
		return nil, nil, err
	}
	o = &one{Shelf: s, th: th, dir: dir, bare: s.path(th.ID)}
	if th.Files.InPlace() {
		o.dir = th.Files.Dir
		o.user, err = findRepository(th.Files.Dir)
		if code := thole.CodeOf(err); code == thole.CodeNotFound || code == thole.CodeInvalid {
			err = nil // there is none, or one that an agent made and that leads to another
		}
	}
	if err == nil {
		err = o.ensure(ctx)
	}
	if err == nil && o.dir != "" {
		err = o.sit(ctx)
	}
	if err != nil {
		unlock()
		return nil, nil, fmt.Errorf("open the thread's shelf: %w", err)
	}
	return o, unlock, nil
}

// sit makes the desk for the files.
func (o *one) sit(ctx context.Context) error {
	uid, err := beneath.Owner(o.dir)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "the thread's files cannot be read: %w", err)
	}
	o.desk = desk{git: o.cfg.Git, maxFile: o.cfg.MaxFile, maxFiles: o.cfg.MaxFiles, at: o.bare + ".desk", tree: o.dir, uid: uid, objects: []string{filepath.Join(o.bare, "objects")}, show: append(o.objects(), o.bare)}
	if o.user != nil {
		return o.desk.follow(ctx, o.user)
	}
	if cone, ok := source.ParseCone(o.th.Files.Sparse); ok {
		o.desk.cone = &cone
	}
	if _, common := o.inFiles(); common != "" {
		text, _ := beneath.ReadFile(common, "info/exclude", maxSmallFile) // without it nothing more is left out
		o.desk.exclude = string(text)
	}
	return nil
}

// sha256 reports how the shelf names objects.
func (o *one) sha256() bool {
	return len(o.th.Files.Commit) == 64 || o.user != nil && o.user.sha256
}

// path is a thread's shelf.
func (s *Shelf) path(id thole.ThreadID) string { return filepath.Join(s.cfg.Dir, string(id)+".git") }

// has reports whether a thread has a shelf with a beginning.
func (s *Shelf) has(id thole.ThreadID) bool {
	_, err := os.Stat(filepath.Join(s.path(id), filepath.FromSlash(refBase)))
	return err == nil
}

// objects are directories of objects that the shelf refers to and does not have: those
// that were chosen when no agent of the thread had run.
func (o *one) objects() []string {
	all := slices.Clone(o.th.Files.Objects)
	if dir := firstLine(o.bare, borrowed); dir != "" && !slices.Contains(all, dir) {
		all = append(all, dir)
	}
	return all
}

// borrowed is the file on a shelf that names the objects of the user's repository.
const borrowed = "borrowed"

// ensure makes the repository next to its place and moves it there.
func (o *one) ensure(ctx context.Context) error {
	if _, err := os.Stat(o.bare); errors.Is(err, fs.ErrNotExist) {
		if err := o.create(ctx); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if err := o.borrow(); err != nil {
		return err
	}
	base := o.th.Files.Carried
	if base == "" {
		base = o.th.Files.Commit
	}
	if base == "" || o.th.Files.Kind != thole.SourceBranch || o.has(o.th.ID) {
		return nil
	}
	if _, err := o.own(ctx, git.Cmd{Args: []string{"update-ref", refBase, base}}); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "the commit that the thread began with is not there: %w", err).
			WithHint("put the repository %s back where it was", o.th.Files.Repo)
	}
	return nil
}

func (o *one) create(ctx context.Context) error {
	half := o.bare + ".new"
	if err := os.RemoveAll(half); err != nil { // of a crash
		return err
	}
	if err := os.MkdirAll(o.cfg.Dir, 0o700); err != nil {
		return err
	}
	format := "sha1"
	if o.sha256() {
		format = "sha256"
	}
	// Readable by all: git in a box is another user than root. Nobody else gets past the home.
	if _, err := o.cfg.Git.Own(ctx, o.cfg.Dir, "init", "-q", "--bare", "--shared=0644", "--template=", "--object-format="+format, half); err != nil {
		return err
	}
	for _, dir := range []string{half, filepath.Join(half, "objects"), filepath.Join(half, "refs")} {
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	return os.Rename(half, o.bare)
}

// borrow lets the shelf find the objects that it refers to, and know where a history
// that is not whole ends.
func (o *one) borrow() error {
	var alternates, shallow strings.Builder
	for _, dir := range o.objects() {
		alternates.WriteString(quote(dir) + "\n")
		text, err := beneath.ReadFile(filepath.Dir(dir), "shallow", maxShallow)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		shallow.Write(text)
	}
	for name, text := range map[string]string{filepath.Join("objects", "info", "alternates"): alternates.String(), "shallow": shallow.String()} {
		path := filepath.Join(o.bare, name)
		have, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if string(have) == text {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := atomicfile.Write(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

const maxShallow = 16 << 20

// quote writes a path as git reads it in a list of object directories, whatever is in it.
func quote(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// own runs git on the shelf. Where the shelf refers to objects in a directory that an
// agent writes, that happens in a box.
func (o *one) own(ctx context.Context, c git.Cmd) ([]byte, error) {
	c.Dir = o.bare
	if !o.th.Files.InPlace() {
		return o.cfg.Git.RunOwn(ctx, c)
	}
	c.Show, c.Write = append(c.Show, o.objects()...), append(c.Write, o.bare)
	return o.cfg.Git.Run(ctx, c)
}

// line runs git on the shelf and returns its output without the end of the line.
func (o *one) line(ctx context.Context, args ...string) (string, error) {
	out, err := o.own(ctx, git.Cmd{Args: args})
	return strings.TrimSpace(string(out)), err
}

// Remove forgets a thread's shelf.
func (s *Shelf) Remove(ctx context.Context, id thole.ThreadID) error {
	unlock, err := s.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	failed := s.unpin(ctx, id)
	for _, end := range []string{".desk", ".new", ".apply", ""} {
		failed = errors.Join(failed, os.RemoveAll(s.path(id)+end))
	}
	return failed
}

// collectEvery is how often shelves of deleted threads are looked for.
const collectEvery = time.Hour

// Collect removes the shelves of threads that are gone, and packs the others when that is
// due, until ctx ends.
func (s *Shelf) Collect(ctx context.Context, gone func(context.Context, thole.ThreadID) bool) {
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	s.Sweep(ctx, gone)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.Sweep(ctx, gone)
		case o := <-s.packing:
			if err := o.pack(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Log.Warn("pack a shelf", "thread", o.th.ID, "err", err) // after the next turn again
			}
		}
	}
}

// Sweep removes the shelves of threads that are gone.
func (s *Shelf) Sweep(ctx context.Context, gone func(context.Context, thole.ThreadID) bool) {
	entries, _ := os.ReadDir(s.cfg.Dir) // not there before the first checkpoint
	for _, e := range entries {
		id, _, _ := strings.Cut(e.Name(), ".")
		if !thole.ValidUUID(id) || !gone(ctx, thole.ThreadID(id)) {
			continue
		}
		if err := s.Remove(ctx, thole.ThreadID(id)); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("remove a shelf", "thread", id, "err", err) // the next pass tries again
		}
	}
}
