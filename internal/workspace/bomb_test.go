//go:build linux

package workspace_test

import (
	"bytes"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/tholehq/thole/internal/testkit/memory"

	"github.com/klauspost/compress/zstd"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// A few bytes that an executor stored do not become the owner's memory.
func TestATreeBomb(t *testing.T) {
	var packed bytes.Buffer
	enc, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = enc.Write([]byte(`{"version":1,"objects":[],"entries":[`))
	for piece := bytes.Repeat([]byte(`{"p":"a","k":"f"},`), 1<<16); ; {
		if _, err := enc.Write(piece); err != nil {
			t.Fatal(err)
		}
		if packed.Len() > 4300 {
			break
		}
	}
	if err := enc.Close(); err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	before := memory.Peak(t, true)
	_, err = workspace.DecodeTree(packed.Bytes())
	grew := memory.Peak(t, false) - before
	if thole.CodeOf(err) != thole.CodeInvalid || grew > 64<<10 {
		t.Errorf("%d bytes took %d MiB: %v", packed.Len(), grew>>10, err)
	}
	t.Logf("%d bytes took %d MiB: %v", packed.Len(), grew>>10, err)
}

// Trees that scans make are far from the bound: names in a row, without a byte in
// any file, shrink most.
func TestTreesAreNoBombs(t *testing.T) {
	tree := &workspace.Tree{}
	for i := range 200_000 {
		tree.Entries = append(tree.Entries, workspace.Entry{Path: "file-" + strconv.Itoa(i), Kind: beneath.File, Mode: 0o644, Mtime: 1_700_000_000_000_000_000 + int64(i)*1_000_003})
	}
	data, _, err := tree.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.DecodeTree(data); err != nil {
		t.Errorf("%d bytes: %v", len(data), err)
	}
}

// A few bytes that are stored once do not fill a disk under many names, and no path is
// so deep that it cannot be walked. What people have passes.
func TestATreeOfManyTimesTheSame(t *testing.T) {
	tree := func(size int64, names int) *workspace.Tree {
		made := &workspace.Tree{Version: workspace.TreeVersion, Objects: []workspace.Object{{ID: "o", Size: size}}}
		for i := range names {
			made.Entries = append(made.Entries, workspace.Entry{Path: "file-" + strconv.Itoa(i), Kind: beneath.File, Size: size})
		}
		return made
	}
	if err := tree(8<<20, 100).Check(); err != nil {
		t.Errorf("a hundred copies: %v", err)
	}
	if err := tree(64<<20, 200).Check(); err != nil {
		t.Errorf("two hundred large copies: %v", err)
	}
	if err := tree(8<<20, 2000).Check(); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("8 MiB as 16 GiB: %v", err)
	}
	if err := tree(1<<62, 2).Check(); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("sizes that overflow: %v", err)
	}
	deep := &workspace.Tree{Version: workspace.TreeVersion}
	for path := "d"; len(path) < 3*workspace.MaxNesting; path += "/d" {
		deep.Entries = append(deep.Entries, workspace.Entry{Path: path, Kind: beneath.Folder, Mode: 0o755})
	}
	if err := deep.Check(); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("%d directories deep: %v", len(deep.Entries), err)
	}
}
