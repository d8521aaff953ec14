package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// TemplateFiles is the object of a template that says what objects cannot: modes, links
// and empty directories. Any tool may store a template's files; without this object they
// are plain files of mode 0644. It is not laid.
const TemplateFiles = ".thole-files.json"

// MaxTemplateFiles bounds it.
const MaxTemplateFiles = 16 << 20

// TemplateFile is what TemplateFiles says of one path.
type TemplateFile struct {
	Mode string `json:"mode,omitempty"` // octal
	Link string `json:"link,omitempty"`
	Dir  bool   `json:"dir,omitempty"`
}

type templateFiles struct {
	Version int                     `json:"version"`
	Files   map[string]TemplateFile `json:"files"`
}

const (
	plainMode  = 0o644
	folderMode = 0o755
)

// DescribeTemplate makes TemplateFiles of a directory.
func DescribeTemplate(dir string) ([]byte, error) {
	out := templateFiles{Version: 1, Files: map[string]TemplateFile{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == "." || rel == TemplateFiles {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f := TemplateFile{Mode: "0" + strconv.FormatUint(uint64(info.Mode().Perm()), 8)}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			f = TemplateFile{}
			if f.Link, err = os.Readlink(path); err != nil {
				return err
			}
		case d.IsDir():
			f.Dir = true
			names, err := os.ReadDir(path)
			if err != nil {
				return err
			}
			if info.Mode().Perm() == folderMode && len(names) > 0 {
				return nil
			}
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is neither a file nor a directory nor a link", rel)
		case info.Mode().Perm() == plainMode:
			return nil
		}
		out.Files[rel] = f
		return nil
	})
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read template: %w", err)
	}
	return json.MarshalIndent(out, "", "  ")
}

// Describe gives a tree of plain objects the modes, links and directories that
// TemplateFiles says.
func (t *Tree) Describe(data []byte) error {
	var in templateFiles
	if err := strictjson.UnmarshalKnown(data, &in); err != nil {
		return thole.Errorf(thole.CodeInvalid, "%s: %w", TemplateFiles, err)
	}
	if in.Version != 1 {
		return thole.Errorf(thole.CodeUnsupported, "%s has version %d, this program reads 1", TemplateFiles, in.Version)
	}
	at := make(map[string]int, len(t.Entries))
	for i, e := range t.Entries {
		at[e.Path] = i
	}
	var errs []error
	for path, f := range in.Files {
		if err := t.describe(at, path, f); err != nil {
			errs = append(errs, thole.Errorf(thole.CodeInvalid, "%s: %q: %w", TemplateFiles, path, err))
		}
	}
	return errors.Join(errs...)
}

func (t *Tree) describe(at map[string]int, path string, f TemplateFile) error {
	if err := beneath.CheckPath(path); err != nil {
		return err
	}
	i, there := at[path]
	if f.Link != "" {
		if there || f.Mode != "" || f.Dir {
			return errors.New("it cannot be a link and something else")
		}
		return t.insert(at, Entry{Path: path, Kind: beneath.Link, Link: f.Link})
	}
	mode, err := strconv.ParseUint(f.Mode, 8, 32)
	if err != nil || mode > beneath.ModeBits {
		return fmt.Errorf("%q is not a mode such as 0755", f.Mode)
	}
	switch {
	case there && f.Dir != (t.Entries[i].Kind == beneath.Folder):
		return errors.New("it is not what is stored")
	case there:
		t.Entries[i].Mode = uint32(mode)
		return nil
	case f.Dir:
		return t.insert(at, Entry{Path: path, Kind: beneath.Folder, Mode: uint32(mode)})
	}
	return errors.New("it is not stored")
}

// insert adds an entry, after the directories that hold it.
func (t *Tree) insert(at map[string]int, e Entry) error {
	for i := range len(e.Path) {
		if e.Path[i] != '/' {
			continue
		}
		up := e.Path[:i]
		if have, ok := at[up]; !ok {
			at[up] = len(t.Entries)
			t.Entries = append(t.Entries, Entry{Path: up, Kind: beneath.Folder, Mode: folderMode})
		} else if t.Entries[have].Kind != beneath.Folder {
			return fmt.Errorf("%q is no directory", up)
		}
	}
	if have, ok := at[e.Path]; ok { // made as the parent of another
		if e.Kind != beneath.Folder {
			return errors.New("it cannot be a link and something else")
		}
		t.Entries[have].Mode = e.Mode
		return nil
	}
	at[e.Path] = len(t.Entries)
	t.Entries = append(t.Entries, e)
	return nil
}
