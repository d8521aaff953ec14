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
