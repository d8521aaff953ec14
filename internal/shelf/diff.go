package shelf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/git"
)

// Range says which states are compared, and what of them.
type Range struct {
	Turn int // the number of a turn; 0: from the thread's beginning until now
	// Path limits it to one file or directory.
	Path string
	// Context is how many lines patches have around each change.
	Context int
	// Patches: with them.
	Patches bool
}

// Diff is how two states differ.
type Diff struct {
	From, To State
	Live     bool // To is of now
	Files    []FileDiff
	// Total, Added and Removed count all files, listed or not.
	Total, Added, Removed int
	Truncated             bool     // files or patches are missing
	Left                  []string // what no state has, and why
	Turns                 []TurnDiff
}

// TurnDiff says whether a turn changed files.
type TurnDiff struct {
	Number  int
	Changed bool
}

// Kind is how a file differs.
type Kind string

const (
	Added      Kind = "added"
	Modified   Kind = "modified"
	Deleted    Kind = "deleted"
	Renamed    Kind = "renamed"
	TypeChange Kind = "type"
)

// FileDiff is one file that differs. Paths are bytes as the file system has them.
type FileDiff struct {
	Path, Old      string // Old is set for Renamed
	Kind           Kind
	Mode, OldMode  string // in octal, "000000" for none
	Added, Removed int
	Binary         bool
	Patch          []byte
	Cut            bool // the patch is not whole
}

// maxListed is how many files a list has; tests have it smaller.
var maxListed = 5_000

// Bounds of a diff.
const (
	maxRaw        = 256 << 20
	maxFilePatch  = 1 << 20
	maxPatches    = 8 << 20
	maxWholePatch = 1 << 30
	diffTimeout   = 2 * time.Minute
	renameLimit   = "1000"
)

// Diff compares. It works while a turn runs.
func (s *Shelf) Diff(ctx context.Context, th fold.Thread, dir string, r Range) (Diff, error) {
	o, d, done, err := s.compare(ctx, th, dir, r)
	if err != nil {
		return d, err
	}
	defer done()
	if d.From.tree == d.To.tree {
		return d, nil
	}
	if err := o.list(ctx, &d, r); err != nil {
		return d, err
	}
	if r.Patches {
		err = o.patches(ctx, &d, r)
	}
	return d, err
}

// Patch writes what Diff describes as one patch.
func (s *Shelf) Patch(ctx context.Context, th fold.Thread, dir string, r Range, w io.Writer) error {
	o, d, done, err := s.compare(ctx, th, dir, r)
	if err != nil {
		return err
	}
	defer done()
	if d.From.tree == d.To.tree {
		return nil
	}
	_, err = o.diffTree(ctx, d.From, d.To, r, git.Cmd{Args: patchArgs(r, "--binary"), Stdout: w, Limit: maxWholePatch})
	return err
}

// compare finds the two states. What it returns is locked until done.
func (s *Shelf) compare(ctx context.Context, th fold.Thread, dir string, r Range) (o *one, d Diff, done func(), err error) {
	o, unlock, err := s.open(ctx, th, dir)
	if err != nil {
		return nil, d, nil, err
	}
	if d, err = o.resolve(ctx, r); err != nil {
		unlock()
	}
	return o, d, unlock, err
}

// resolve finds the states of a range, and makes a checkpoint where one of them is now.
func (o *one) resolve(ctx context.Context, r Range) (d Diff, err error) {
	all, err := o.begun(ctx)
	if err != nil {
		return d, err
	}
	turns := all.turns()
	for _, n := range turns {
		d.Turns = append(d.Turns, TurnDiff{n, all.changed(n)})
	}
	if r.Turn < 0 || r.Turn > o.th.Turns {
		return d, thole.Errorf(thole.CodeNotFound, "the thread has no turn %d", r.Turn).WithHint("it has %d", o.th.Turns)
	}
	d.From = all[refBase]
	if r.Turn > 0 {
		d.From, _ = all.before(r.Turn)
		after, known := all[refAfter(r.Turn)]
		if !known && len(turns) > 0 && r.Turn < turns[0] {
			if _, later := all[refBefore(turns[0])]; !later { // no turn before had files
				after, known = d.From, true
			}
		}
		if d.To = after; known {
			return d, nil
		}
		if r.Turn < o.th.Turns {
			return d, thole.Errorf(thole.CodeNotFound, "what turn %d left was not kept", r.Turn).WithHint("ask for all changes, or for those of another turn")
		}
	}
	d.Live = true
	d.To, d.Left, err = o.now(ctx, all)
	return d, err
}

// now makes a checkpoint of the files as they are and keeps it until the next.
func (o *one) now(ctx context.Context, all states) (State, []string, error) {
	st, left, err := o.take(ctx, all)
	if err == nil && st.Commit != all[refNow].Commit {
		err = o.keep(ctx, st, refNow)
	}
	return st, append(left, o.unfetched()...), err
}

// diffTree compares two states with the attributes that the files have now, as git diff
// in them would.
func (o *one) diffTree(ctx context.Context, from, to State, r Range, c git.Cmd) ([]byte, error) {
	c.Args = append(append([]string{"--literal-pathspecs", "diff-tree", "-r", "-M", "-l" + renameLimit, "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "--submodule=short"}, c.Args...), from.Commit, to.Commit, "--")
	if r.Path != "" {
		c.Args = append(c.Args, r.Path)
	}
	c.Timeout = diffTimeout
	if o.dir == "" {
		c.Dir, c.Show = o.bare, append(o.objects(), o.bare)
		return o.cfg.Git.Run(ctx, c)
	}
	c.Env = map[string]string{"GIT_OPTIONAL_LOCKS": "0"}
	return o.desk.look(ctx, c)
}

// list reads which files differ, and by how many lines.
func (o *one) list(ctx context.Context, d *Diff, r Range) error {
	out, err := o.diffTree(ctx, d.From, d.To, r, git.Cmd{Args: []string{"-z", "--raw", "--no-abbrev", "--numstat"}, Limit: maxRaw})
	if errors.Is(err, git.ErrTooLong) {
		return thole.Errorf(thole.CodeUnsupported, "more files differ than can be listed").WithHint("ask for one directory")
	}
	if err != nil {
		return err
	}
	d.Files, err = parseDiff(out)
	if err != nil {
		return err
	}
	d.Total = len(d.Files)
	for _, f := range d.Files {
		d.Added, d.Removed = d.Added+f.Added, d.Removed+f.Removed
	}
	if d.Total > maxListed {
		d.Files, d.Truncated = d.Files[:maxListed], true
	}
	return nil
}

// parseDiff reads the raw records and then the counts of git diff-tree -z --raw
// --numstat, which come in the same order.
func parseDiff(out []byte) (files []FileDiff, err error) {
	bad := func() ([]FileDiff, error) {
		return nil, thole.Errorf(thole.CodeInternal, "git described the difference in a way that is not understood")
	}
	fields := strings.Split(string(out), "\x00")
	at := 0
	next := func() string {
		if at >= len(fields) {
			return ""
		}
		at++
		return fields[at-1]
	}
	for at < len(fields) && strings.HasPrefix(fields[at], ":") {
		parts := strings.Fields(next())
		if len(parts) != 5 {
			return bad()
		}
		f := FileDiff{OldMode: strings.TrimPrefix(parts[0], ":"), Mode: parts[1], Path: next()}
		switch parts[4][0] {
		case 'A':
			f.Kind = Added
		case 'M':
			f.Kind = Modified
		case 'D':
			f.Kind = Deleted
		case 'T':
			f.Kind = TypeChange
		case 'R':
			f.Kind, f.Old, f.Path = Renamed, f.Path, next()
		default:
			return bad()
		}
		files = append(files, f)
	}
	for i := range files {
		parts := strings.SplitN(next(), "\t", 3)
		if len(parts) != 3 {
			return bad()
		}
		path := parts[2]
		if path == "" {
			_, path = next(), next()
		}
		if path != files[i].Path {
			return bad()
		}
		if files[i].Binary = parts[0] == "-"; files[i].Binary {
			continue
		}
		added, err1 := strconv.Atoi(parts[0])
		removed, err2 := strconv.Atoi(parts[1])
		if err1 != nil || err2 != nil {
			return bad()
		}
		files[i].Added, files[i].Removed = added, removed
	}
	return files, nil
}

func patchArgs(r Range, more ...string) []string {
	return append([]string{"-p", "--full-index", "-U" + strconv.Itoa(r.Context)}, more...)
}

// patches adds the patch of each file, up to the bounds.
func (o *one) patches(ctx context.Context, d *Diff, r Range) error {
	split := &patchSplitter{files: d.Files, at: -1, left: maxPatches}
	_, err := o.diffTree(ctx, d.From, d.To, r, git.Cmd{Args: patchArgs(r), Stdout: split})
	if err != nil && !split.full {
		return err
	}
	split.end()
	d.Truncated = d.Truncated || split.cut
	return nil
}

// patchSplitter gives each file its part of a patch. Parts come in the order of the
// files; one that changed its type has two.
type patchSplitter struct {
	files []FileDiff
	at    int // of the file that is being read
	seen  int // parts of it
	line  []byte
	torn  bool // what comes next is the rest of a line
	left  int
	full  bool // no more is wanted
	cut   bool
}

var errEnough = errors.New("enough of the patch was read")

const partStart = "diff --git "

func (p *patchSplitter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			p.line = append(p.line, b...)
			break
		}
		p.line = append(p.line, b[:i+1]...)
		if err := p.put(); err != nil {
			return 0, err
		}
		b = b[i+1:]
	}
	if len(p.line) > maxFilePatch { // a line without end
		return n, p.put()
	}
	return n, nil
}

// put adds the line that was read to its file.
func (p *patchSplitter) put() error {
	line, rest := p.line, p.torn
	p.line, p.torn = p.line[:0], !bytes.HasSuffix(p.line, []byte{'\n'})
	if !rest && bytes.HasPrefix(line, []byte(partStart)) {
		if p.seen++; p.at < 0 || p.files[p.at].Kind != TypeChange || p.seen > 2 {
			p.at, p.seen = p.at+1, 1
		}
	}
	if p.at >= len(p.files) {
		p.full = true
		return errEnough
	}
	if p.at < 0 {
		return nil
	}
	f := &p.files[p.at]
	switch {
	case f.Cut || f.Binary:
	case len(f.Patch)+len(line) > maxFilePatch || len(line) > p.left:
		f.Cut, p.cut = true, true
	default:
		f.Patch = append(f.Patch, line...)
		p.left -= len(line)
	}
	return nil
}

func (p *patchSplitter) end() {
	if len(p.line) > 0 {
		_ = p.put()
	}
}

// Summary says in words how many files and lines differ.
func (d Diff) Summary() string {
	files, lines := "files", "lines"
	if d.Total == 1 {
		files = "file"
	}
	if d.Added == 1 {
		lines = "line"
	}
	return fmt.Sprintf("%d %s changed, %d %s added, %d removed", d.Total, files, d.Added, lines, d.Removed)
}
