package changes

import (
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/shelf"
)

// text is bytes as JSON can have them.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func ofDiff(th fold.Thread, d shelf.Diff, turn int) view.Changes {
	c := view.Changes{
		Turn: turn, From: d.From.Commit, To: d.To.Commit, Live: d.Live, InPlace: th.Files.InPlace(), Branch: th.Files.Branch,
		Files: ofFiles(d.Files), Added: d.Added, Removed: d.Removed, Total: d.Total, Truncated: d.Truncated, Turns: []view.TurnChanges{},
	}
	if filepath.IsAbs(th.Files.Repo) && !c.InPlace {
		c.Repo = th.Files.Repo
	}
	for _, left := range d.Left {
		c.LeftOut = append(c.LeftOut, text(left))
	}
	for _, t := range d.Turns {
		c.Turns = append(c.Turns, view.TurnChanges(t))
	}
	return c
}

func ofFiles(list []shelf.FileDiff) []view.ChangedFile {
	out := make([]view.ChangedFile, len(list))
	for i, f := range list {
		c := view.ChangedFile{
			Path: text(f.Path), OldPath: text(f.Old), Kind: string(f.Kind), Mode: f.Mode, OldMode: f.OldMode, Added: f.Added, Removed: f.Removed, Binary: f.Binary, Patch: text(string(f.Patch)), Cut: f.Cut,
		}
		if !utf8.ValidString(f.Path) {
			c.PathBytes = []byte(f.Path)
		}
		if f.Kind == shelf.Deleted {
			c.Mode = ""
		}
		if c.OldMode == c.Mode || f.Kind == shelf.Added {
			c.OldMode = ""
		}
		out[i] = c
	}
	return out
}

func ofConflicts(list []shelf.Conflict) []view.Conflict {
	out := make([]view.Conflict, len(list))
	for i, c := range list {
		out[i] = view.Conflict{Path: text(c.Path), Why: text(c.Why)}
	}
	return out
}
