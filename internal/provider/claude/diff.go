package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/strictjson"
)

// maxDiffInput bounds the files that a preview is computed for; larger edits are
// shown by path only.
const maxDiffInput = 1 << 20

const contextLines = 3

// editInput is the input of Write, Edit, MultiEdit and NotebookEdit.
type editInput struct {
	Path     string  `json:"file_path"`
	Notebook string  `json:"notebook_path"`
	Content  *string `json:"content"`
	edit
	Edits []edit `json:"edits"`
}

type edit struct {
	Old string `json:"old_string"`
	New string `json:"new_string"`
	All bool   `json:"replace_all"`
}

// preview is the change an edit tool is about to make, read against the file as
// it is now.
func preview(dir string, input json.RawMessage) []event.FileChange {
	var in editInput
	_ = strictjson.Unmarshal(input, &in)
	path := in.Path
	if path == "" {
		path = in.Notebook
	}
	if path == "" {
		return nil
	}
	c := event.FileChange{Path: provider.Relative(dir, path), Kind: "update"}
	if !filepath.IsLocal(c.Path) {
		return []event.FileChange{c} // the server sees other files there than the agent
	}
	files, err := base.OpenFiles(provider.SessionConfig{}, dir)
	if err != nil {
		return []event.FileChange{c}
	}
	defer files.Close()
	info, err := files.Stat(c.Path)
	if errors.Is(err, fs.ErrNotExist) {
		c.Kind, err = "add", nil
	}
	if err != nil || in.Notebook != "" || info != nil && (info.Size() > maxDiffInput || !info.Mode().IsRegular()) {
		return []event.FileChange{c}
	}
	var before []byte
	if info != nil {
		if before, err = files.Read(c.Path); err != nil {
			return []event.FileChange{c}
		}
	}
	after := string(before)
	switch {
	case in.Content != nil:
		after = *in.Content
	default:
		for _, e := range append([]edit{in.edit}, in.Edits...) {
			if e.Old == "" && e.New == "" {
				continue
			}
			n := 1
			if e.All {
				n = -1
			}
			if e.Old == "" && after == "" {
				after = e.New
				continue
			}
			after = strings.Replace(after, e.Old, e.New, n)
		}
	}
	if len(after) <= maxDiffInput {
		c.Diff = unified(c.Path, c.Kind, string(before), after)
	}
	return []event.FileChange{c}
}

// applied is the change an edit tool reports to have made, nil when it says none.
func applied(dir string, result json.RawMessage) []event.FileChange {
	var r struct {
		Type    string `json:"type"`
		Path    string `json:"filePath"`
		Content string `json:"content"`
		Patch   []struct {
			OldStart int      `json:"oldStart"`
			OldLines int      `json:"oldLines"`
			NewStart int      `json:"newStart"`
			NewLines int      `json:"newLines"`
			Lines    []string `json:"lines"`
		} `json:"structuredPatch"`
	}
	if strictjson.Unmarshal(result, &r) != nil || r.Path == "" {
		return nil
	}
	c := event.FileChange{Path: provider.Relative(dir, r.Path), Kind: "update"}
	if r.Type == "create" {
		c.Kind = "add"
		c.Diff = unified(c.Path, c.Kind, "", r.Content)
		return []event.FileChange{c}
	}
	var b strings.Builder
	header(&b, c.Path, c.Kind)
	for _, h := range r.Patch {
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
		for _, l := range h.Lines {
			b.WriteString(l)
			b.WriteByte('\n')
		}
	}
	if len(r.Patch) > 0 {
		c.Diff = b.String()
	}
	return []event.FileChange{c}
}

func header(b *strings.Builder, path, kind string) {
	if kind == "add" {
		fmt.Fprintf(b, "--- /dev/null\n+++ b/%s\n", path)
		return
	}
	fmt.Fprintf(b, "--- a/%s\n+++ b/%s\n", path, path)
}

// unified is a diff of one hunk: everything between the first and the last line
// that differ.
func unified(path, kind, before, after string) string {
	if before == after {
		return ""
	}
	old, now := lines(before), lines(after)
	head := 0
	for head < len(old) && head < len(now) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(now)-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	from := max(0, head-contextLines)
	after2 := min(tail, contextLines)
	oldEnd, newEnd := len(old)-tail, len(now)-tail
	var b strings.Builder
	header(&b, path, kind)
	fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(from, oldEnd+after2), span(from, newEnd+after2))
	write := func(mark byte, ls []string) {
		for _, l := range ls {
			b.WriteByte(mark)
			b.WriteString(l)
			if !strings.HasSuffix(l, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	write(' ', old[from:head])
	write('-', old[head:oldEnd])
	write('+', now[head:newEnd])
	write(' ', old[oldEnd:oldEnd+after2])
	return b.String()
}

// span is a hunk's range; an empty side names the line before it.
func span(from, to int) string {
	if to == from {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

// lines splits after every newline and keeps it.
func lines(s string) []string {
	if s == "" {
		return nil
	}
	ls := strings.SplitAfter(s, "\n")
	if ls[len(ls)-1] == "" {
		ls = ls[:len(ls)-1]
	}
	return ls
}
