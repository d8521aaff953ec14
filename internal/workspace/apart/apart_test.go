//go:build linux

package apart

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/testkit/memory"
	"github.com/tholehq/thole/internal/testkit/usurper"
	"github.com/tholehq/thole/internal/workspace"
)

// This program is also the process that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) == 7 && os.Args[2] == "files" {
		if err := Serve(context.Background(), os.Args[4], os.Args[6]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv("THOLE_TEST_GREEDY") != "" {
		if err := bound(256 << 20); err != nil {
			panic(err)
		}
		b := bytes.Repeat([]byte{1}, 512<<20)
		fmt.Fprintln(os.Stdout, "took", len(b))
		return
	}
	os.Exit(m.Run())
}

func self(t *testing.T) Processes {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Processes{Self: path}
}

// stored serves one tree and returns its link.
func stored(t *testing.T, data []byte) workspace.TreeLink {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }))
	t.Cleanup(srv.Close)
	return workspace.TreeLink{Sum: objects.SumOf(data), Link: objects.Link{URL: srv.URL}}
}

// The owner does not hold what an executor stored: not while it syncs the files that
// are left, nor while it exports them.
func TestTheOwnerHoldsNothingOfALargeTree(t *testing.T) {
	data := usurper.Bomb()
	link := stored(t, data)
	dir, out := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kept"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	before := memory.Peak(t, true)
	side, release, err := self(t).Side(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	scan, err := side.Scan(t.Context(), workspace.ScanRequest{Base: &link, Quiet: true})
	if err != nil || scan.Files != 1 || len(scan.New) != 1 {
		t.Errorf("the scan found %+v: %v", scan, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	links := map[string]objects.Link{"tree-" + link.Sum.String(): link.Link}
	x, err := self(t).Export(t.Context(), workspace.ExportRequest{Tree: link, Links: links, Dir: out})
	if err != nil || x.Files != 0 || len(x.Skipped) != 1001 || !strings.Contains(x.Skipped[1000], "249000 more") {
		t.Errorf("the export wrote %d files and left %d out: %v", x.Files, len(x.Skipped), err)
	}
	if _, err := os.Stat(filepath.Join(out, "x")); err != nil {
		t.Error(err)
	}
	if grew := memory.Peak(t, false) - before; grew > 32<<10 {
		t.Errorf("%d bytes took %d MiB of the owner", len(data), grew>>10)
	}
}

// A tree that no scan made is no reason to lose the files: all of them are stored again.
func TestABaseThatIsNoTree(t *testing.T) {
	link := stored(t, []byte(`{"version":2,"entries":[{"p":"../up","k":"f"}]}`))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kept"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	side, release, err := self(t).Side(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = release() }()
	if scan, err := side.Scan(t.Context(), workspace.ScanRequest{Base: &link, Quiet: true}); err != nil || len(scan.New) != 1 {
		t.Errorf("the scan found %+v: %v", scan, err)
	}
}

// What takes more than its bound dies of it, and the owner hears why.
func TestTheBoundHolds(t *testing.T) {
	cmd := exec.Command(self(t).Self)
	cmd.Env = append(os.Environ(), "THOLE_TEST_GREEDY=1")
	if out, err := cmd.CombinedOutput(); err == nil || bytes.Contains(out, []byte("took")) {
		t.Errorf("a greedy process ended with %v: %.200s", err, out)
	}
	// One that is gone in the middle of the work is an error that says so.
	side, release, err := Processes{Self: "/bin/false"}.Side(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = release() }()
	if _, err := side.Scan(t.Context(), workspace.ScanRequest{}); thole.CodeOf(err) != thole.CodeUnavailable || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("a process that ended: %v", err)
	}
}
