//go:build linux

package execserver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tholehq/thole/protocol/exec"
)

// FuzzFileParams: whatever a client sends as the parameters of a file call, a
// path that is taken is absolute, clean and one string.
func FuzzFileParams(f *testing.F) {
	for _, s := range []string{
		`{"path":"file:///a/../b"}`, `{"path":"file:///a%00b"}`, `{"path":"file://localhost/x y","followSymlinks":false}`, `{"path":null}`,
		`{"sourcePath":"file:///a","destinationPath":"file:///%00/bad/path/L3g","recursive":true}`, `{"handleId":"h","path":"file:/x","mode":"replace"}`,
		`{"path":"file:///x","options":{"maxDepth":64,"maxDirectories":1,"maxEntries":1,"followDirectorySymlinks":true}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var one exec.PathParams
		var two exec.CopyParams
		var open exec.OpenParams
		var walk exec.WalkParams
		var uris []string
		if decode(raw, &one) == nil {
			uris = append(uris, one.Path)
		}
		if decode(raw, &two) == nil {
			uris = append(uris, two.SourcePath, two.DestinationPath)
		}
		if decode(raw, &open) == nil {
			uris = append(uris, open.Path)
		}
		if decode(raw, &walk) == nil {
			uris = append(uris, walk.Path)
		}
		for _, uri := range uris {
			path, err := nativePath(uri)
			if err == nil && (!filepath.IsAbs(path) || strings.Contains(path, "\x00") || slices.Contains(strings.Split(path, "/"), "..")) {
				t.Errorf("%q is taken as %q", uri, path)
			}
		}
	})
}

// TestLongPathsEndAtOnce: a path that the system would not take is not looked up, name by name.
func TestLongPathsEndAtOnce(t *testing.T) {
	_, err := nativePath("file:///x" + strings.Repeat("/a", 1<<20))
	if codeOf(err) != exec.CodeInternal {
		t.Errorf("a path of a million names: %v", err)
	}
	if path, err := nativePath("file:///" + strings.Repeat("a/", 2000) + "b"); err != nil || len(path) != 4002 {
		t.Errorf("one that may be: %d bytes, %v", len(path), err)
	}
}

// TestHandlesAtOnce: of opens that run at the same time one gets an id, as many get a place
// as there are, and no file stays open without a handle.
func TestHandlesAtOnce(t *testing.T) {
	for range 5 {
		var h handles
		var wg sync.WaitGroup
		files := make(chan *os.File, 1000)
		for i := range 400 {
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			files <- f
			wg.Go(func() {
				_ = h.put(fmt.Sprint(i%200), f)
			})
		}
		wg.Wait()
		close(files)
		if len(h.files) != exec.MaxHandles {
			t.Fatalf("%d handles", len(h.files))
		}
		h.closeAll()
		for f := range files {
			if f.Close() == nil {
				t.Fatal("a file was open without a handle")
			}
		}
	}
}

// TestShellSnapshotOfAnother: a snapshot is of the shell that the command runs; with another
// program it asks for nothing.
func TestShellSnapshotOfAnother(t *testing.T) {
	for argv0, refused := range map[string]bool{"/bin/fish": true, "/bin/bash": false} {
		p := exec.StartParams{Argv: []string{argv0, "-lc", "true"}, ShellSnapshot: &exec.ShellSnapshot{ScopeID: "s", Shell: exec.Shell{Name: "fish", Path: "/bin/fish"}}}
		if e := refuseUnsupported(&p); (e != nil) != refused {
			t.Errorf("%s: %v", argv0, e)
		}
	}
}
