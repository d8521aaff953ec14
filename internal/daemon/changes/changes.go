// Package changes answers what people ask about how threads' files changed, on the home's
// socket and over HTTP: show it, bring it out, take it back. It finds a thread's files,
// refuses while a turn writes them, and leaves the rest to the shelf; an undo it asks of
// the dispatcher, as a turn.
package changes

import (
	"context"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/forge"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/thread"
)

// Config makes a Service.
type Config struct {
	Threads thread.Service
	Rows    executor.Rows
	Driver  executor.Driver
	Shelf   *shelf.Shelf
	// Stored writes the files of a thread's last sync into a new directory.
	Stored func(ctx context.Context, id thole.ThreadID, dir string) error
	// Forges opens pull requests; Token is what a person keeps for a forge, "" for nothing.
	Forges *forge.Client
	Token  func(ctx context.Context, who thole.Owner, host string) (string, error)
	// Audit records what is brought out and taken back; nil: nobody does.
	Audit *audit.Log
	// Temp is where that directory is made.
	Temp string
	Log  *slog.Logger
}

// Service answers. Safe for concurrent use.
type Service struct{ cfg Config }

var _ httpapi.Changes = (*Service)(nil)

// New makes a service.
func New(cfg Config) *Service { return &Service{cfg} }

// files finds a thread and where its files are on this machine, "" for nowhere. What was
// made for that is removed by done.
func (s *Service) files(ctx context.Context, actor thole.Actor, id thole.ThreadID) (th fold.Thread, dir string, done func(), err error) {
	done = func() {}
	if th, err = s.cfg.Threads.Get(ctx, actor, id); err != nil || th.Files.InPlace() {
		return th, th.Files.Dir, done, err
	}
	rows, err := s.cfg.Rows.Of(ctx, id)
	if err != nil {
		return th, "", done, err
	}
	var last executor.Row
	for _, row := range rows {
		if row.Restored && (row.State == executor.RowRunning || row.State == executor.RowStopped) && !row.LastActive.Before(last.LastActive) {
			last = row
		}
	}
	if where, ok := s.cfg.Driver.(executor.Files); ok && last.ID != "" {
		dir, err = where.WorkspaceDir(last.ID)
		return th, dir, done, err
	}
	if th.Turns == 0 || s.cfg.Shelf.Kept(id, th.Turns) || s.cfg.Stored == nil {
		return th, "", done, nil
	}
	// Its executor is gone, and what its last turn left was not kept: the sync has it.
	if err := os.MkdirAll(s.cfg.Temp, 0o700); err != nil {
		return th, "", done, err
	}
	if dir, err = os.MkdirTemp(s.cfg.Temp, "stored-"); err != nil {
		return th, "", done, err
	}
	done = func() {
		if err := os.RemoveAll(dir); err != nil {
			s.cfg.Log.Warn("remove stored files", "thread", id, "err", err)
		}
	}
	err = s.cfg.Stored(ctx, id, filepath.Join(dir, "files"))
	if thole.CodeOf(err) == thole.CodeNotFound {
		done()
		return th, "", func() {}, nil // nothing was ever saved
	}
	if err != nil {
		done()
		return th, "", func() {}, err
	}
	return th, filepath.Join(dir, "files"), done, nil
}

// still is files of a thread that no turn changes meanwhile.
func (s *Service) still(ctx context.Context, actor thole.Actor, id thole.ThreadID) (fold.Thread, string, func(), error) {
	th, dir, done, err := s.files(ctx, actor, id)
	if err == nil && th.Open != "" {
		done()
		err = thole.Errorf(thole.CodeBusy, "a turn runs, and changes the files").WithHint("wait for its end (thole thread tail %s), or end it: thole thread interrupt %s", id, id)
	}
	return th, dir, done, err
}

// Diff implements httpapi.Changes.
func (s *Service) Diff(ctx context.Context, actor thole.Actor, id thole.ThreadID, q httpapi.ChangesQuery) (view.Changes, error) {
	th, dir, done, err := s.files(ctx, actor, id)
	if err != nil {
		return view.Changes{}, err
	}
	defer done()
	d, err := s.cfg.Shelf.Diff(ctx, th, dir, rangeOf(q))
	if err == nil && d.Total == 0 {
		err = s.unmatched(ctx, th, dir, q)
	}
	if err != nil {
		return view.Changes{}, err
	}
	return ofDiff(th, d, q.Turn), nil
}

func rangeOf(q httpapi.ChangesQuery) shelf.Range {
	return shelf.Range{Turn: q.Turn, Path: q.Path, Context: q.Context, Patches: q.Patches}
}

// Patch implements httpapi.Changes.
func (s *Service) Patch(ctx context.Context, actor thole.Actor, id thole.ThreadID, q httpapi.ChangesQuery, w io.Writer) error {
	th, dir, done, err := s.files(ctx, actor, id)
	if err != nil {
		return err
	}
	defer done()
	out := &counted{Writer: w}
	err = s.cfg.Shelf.Patch(ctx, th, dir, rangeOf(q), out)
	if err == nil && out.n == 0 {
		err = s.unmatched(ctx, th, dir, q)
	}
	return err
}

// target is the directory that changes go to: the one that is named, else the repository
// that the files came from, else where the asker stands. Over HTTP nothing is named.
func target(actor thole.Actor, th fold.Thread, named, stands string) (string, error) {
	switch {
	case actor.User != thole.LocalUser:
		return "", thole.Errorf(thole.CodeForbidden, "only the user of this machine can have changes written to its directories").WithHint("push the thread's branch instead")
	case th.Files.InPlace():
		return th.Files.Dir, nil // refused there
	case named != "":
		return named, nil
	case filepath.IsAbs(th.Files.Repo):
		return th.Files.Repo, nil
	case stands != "":
		return stands, nil
	}
	return "", thole.Errorf(thole.CodeInvalid, "the thread's files came from no directory of this machine").WithHint("name one: thole thread apply %s --to DIR", th.ID)
}

// repository is the target of a branch. The work of a thread that began with no commit has no
// history in common with any repository, so one must be named.
func repository(actor thole.Actor, th fold.Thread, named, stands string) (string, error) {
	if th.Files.Kind == thole.SourceBranch || th.Files.InPlace() || named != "" {
		return target(actor, th, named, stands)
	}
	if _, err := target(actor, th, named, stands); thole.CodeOf(err) == thole.CodeForbidden {
		return "", err
	}
	return "", thole.Errorf(thole.CodeInvalid, "the thread's files came from no repository, so its branch would share no history with yours").
		WithHint("thole thread apply %s --to DIR writes the files; --to DIR here makes the branch all the same", th.ID)
}

// Apply implements httpapi.Changes.
func (s *Service) Apply(ctx context.Context, actor thole.Actor, id thole.ThreadID, check bool) (view.Applied, error) {
	mode := shelf.ApplyNow
	if check {
		mode = shelf.ApplyCheck
	}
	return s.apply(ctx, actor, ApplyParams{Thread: id, Mode: mode})
}

func (s *Service) apply(ctx context.Context, actor thole.Actor, p ApplyParams) (view.Applied, error) {
	th, dir, done, err := s.still(ctx, actor, p.Thread)
	if err != nil {
		return view.Applied{}, err
	}
	defer done()
	to, err := target(actor, th, p.To, p.Cwd)
	if err != nil {
		return view.Applied{}, err
	}
	var a shelf.Applied
	err = s.recorded(ctx, "file.apply", th, p.Mode != shelf.ApplyCheck, map[string]any{"to": to}, func() (err error) {
		a, err = s.cfg.Shelf.Apply(ctx, th, dir, to, p.Mode)
		return err
	})
	if err != nil {
		return view.Applied{}, err
	}
	return view.Applied{Dir: a.Dir, Done: a.Done, Files: ofFiles(a.Files), Total: a.Total, Conflicts: ofConflicts(a.Conflicts), Notes: a.Notes}, nil
}

// Pull implements httpapi.Changes.
func (s *Service) Pull(ctx context.Context, actor thole.Actor, id thole.ThreadID, force bool) (view.Pulled, error) {
	return s.pull(ctx, actor, PullParams{Thread: id, Force: force})
}

func (s *Service) pull(ctx context.Context, actor thole.Actor, p PullParams) (view.Pulled, error) {
	th, dir, done, err := s.still(ctx, actor, p.Thread)
	if err != nil {
		return view.Pulled{}, err
	}
	defer done()
	to, err := repository(actor, th, p.To, p.Cwd)
	if err != nil {
		return view.Pulled{}, err
	}
	var got shelf.Pulled
	err = s.recorded(ctx, "file.pull", th, true, map[string]any{"to": to, "force": p.Force}, func() (err error) {
		got, err = s.cfg.Shelf.Pull(ctx, th, dir, to, p.As, p.Force)
		return err
	})
	return view.Pulled(got), err
}

// Merge implements httpapi.Changes.
func (s *Service) Merge(ctx context.Context, actor thole.Actor, id thole.ThreadID) (view.Merged, error) {
	return s.merge(ctx, actor, PullParams{Thread: id})
}

func (s *Service) merge(ctx context.Context, actor thole.Actor, p PullParams) (view.Merged, error) {
	th, dir, done, err := s.still(ctx, actor, p.Thread)
	if err != nil {
		return view.Merged{}, err
	}
	defer done()
	to, err := repository(actor, th, p.To, p.Cwd)
	if err != nil {
		return view.Merged{}, err
	}
	var m shelf.Merged
	err = s.recorded(ctx, "file.merge", th, true, map[string]any{"to": to}, func() (err error) {
		m, err = s.cfg.Shelf.Merge(ctx, th, dir, to, p.As)
		return err
	})
	return view.Merged{Pulled: view.Pulled(m.Pulled), Into: m.Into, Done: m.Done, FastForward: m.FastForward, Conflicts: ofConflicts(m.Conflicts)}, err
}

// Push implements httpapi.Changes: it asks nobody anything.
func (s *Service) Push(ctx context.Context, actor thole.Actor, id thole.ThreadID, remote string, force bool) (view.Pushed, error) {
	if actor.User != thole.LocalUser {
		return view.Pushed{}, thole.Errorf(thole.CodeForbidden, "only the user of this machine pushes with its credentials")
	}
	th, dir, done, err := s.still(ctx, actor, id)
	if err != nil {
		return view.Pushed{}, err
	}
	defer done()
	var w shelf.Work
	var said string
	err = s.recorded(ctx, "file.push", th, true, map[string]any{"remote": plainRemote(remote), "force": force}, func() (err error) {
		w, said, err = s.cfg.Shelf.Push(ctx, th, dir, remote, force)
		return err
	})
	return view.Pushed{Remote: w.Remote, Branch: w.Branch, Commit: w.Commit, Output: said, Notes: w.Notes}, err
}

// Prepare makes what a client pushes with the user's own git, or a forge is asked to take.
func (s *Service) Prepare(ctx context.Context, actor thole.Actor, p PushParams) (PushResult, error) {
	th, dir, done, err := s.still(ctx, actor, p.Thread)
	if err != nil {
		return PushResult{}, err
	}
	defer done()
	w, err := s.cfg.Shelf.Prepare(ctx, th, dir, p.As)
	if err != nil {
		return PushResult{}, err
	}
	if p.Remote != "" {
		w.Remote = p.Remote
	}
	if w.Remote == "" {
		return PushResult{}, thole.Errorf(thole.CodeInvalid, "the thread's files came from no repository with a remote").WithHint("name one: thole thread push %s --remote URL", p.Thread)
	}
	if err := shelf.CheckRemote(w.Remote); err != nil {
		return PushResult{}, err
	}
	res := PushResult{Pushed: view.Pushed{Remote: w.Remote, Branch: w.Branch, Commit: w.Commit, Notes: w.Notes}, Commits: w.Commits, Dir: w.Dir, Args: shelf.PushArgs(w, p.Force)}
	return res, s.recorded(ctx, "file.push", th, true, map[string]any{"remote": plainRemote(w.Remote), "commit": w.Commit, "force": p.Force}, func() error { return nil })
}

// Undo implements httpapi.Changes.
func (s *Service) Undo(ctx context.Context, actor thole.Actor, id thole.ThreadID, turn int) (view.Undone, error) {
	th, dir, done, err := s.still(ctx, actor, id)
	if err != nil {
		return view.Undone{}, err
	}
	defer done()
	if turn, err = s.cfg.Shelf.Undoable(ctx, th, dir, turn); err != nil {
		return view.Undone{}, err
	}
	var t fold.Turn
	err = s.recorded(ctx, "file.undo", th, true, map[string]any{"turn": turn}, func() (err error) {
		t, err = s.cfg.Threads.StartTurn(ctx, actor, thread.StartTurn{Thread: id, Input: thole.Undo(turn), Command: true})
		return err
	})
	return view.Undone{RunID: string(t.ID), Number: t.Number, Turn: turn}, err
}

// recorded does what brings the files of a thread out or takes them back, as a link of the
// audit chain if it writes.
func (s *Service) recorded(ctx context.Context, action string, th fold.Thread, writes bool, facts map[string]any, do func() error) error {
	if !writes {
		return do()
	}
	o := th.Owner
	return s.cfg.Audit.Do(ctx, audit.Entry{Action: action, Kind: "thread", ID: string(th.ID), App: o.App, Project: o.Project, Owner: o.User, After: audit.Facts(facts)}, do)
}

// plainRemote is the address of a repository without a name and password in it.
func plainRemote(remote string) string {
	if u, err := url.Parse(remote); err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	return remote
}

// lookAgain is how soon the end of an undo is found.
const lookAgain = 50 * time.Millisecond

// undone waits for the end of an undo and returns what it says.
func (s *Service) undone(ctx context.Context, actor thole.Actor, p UndoneParams) (UndoneResult, error) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		t, err := s.cfg.Threads.Turn(ctx, actor, p.Thread, p.Turn)
		if err != nil {
			return UndoneResult{}, err
		}
		if t.Phase.Terminal() {
			return s.result(ctx, actor, t)
		}
		select {
		case <-ctx.Done():
			return UndoneResult{}, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

func (s *Service) result(ctx context.Context, actor thole.Actor, t fold.Turn) (out UndoneResult, err error) {
	if t.Outcome != thole.OutcomeCompleted {
		err := thole.Errorf(thole.CodeUnavailable, "the undo was stopped").WithHint("it can be repeated")
		if t.Error != nil {
			err = thole.Errorf(thole.CodeUnavailable, "%s", t.Error.Message).WithHint("%s", t.Error.Hint)
		}
		return out, err
	}
	items, err := s.cfg.Threads.Items(ctx, actor, t.Thread, t.ID, thread.PageParams{Limit: 10})
	for _, it := range items.Items {
		if it.Item.Kind == event.ItemSystem {
			out.Text = it.Item.Text
		}
	}
	return out, err
}
