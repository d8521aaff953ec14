//go:build linux

package execserver

import (
	"path/filepath"
	"slices"
	"strings"
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
		if decode(raw, &one, "path") == nil {
			uris = append(uris, one.Path)
		}
		if decode(raw, &two, "sourcePath", "destinationPath", "recursive") == nil {
			uris = append(uris, two.SourcePath, two.DestinationPath)
		}
		if decode(raw, &open, "handleId", "path") == nil {
			uris = append(uris, open.Path)
		}
		if decode(raw, &walk, "path", "options") == nil {
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
