package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// smallSite is a home on a disk of its own, for the program as it is released.
func smallSite(t *testing.T, size string) *site {
	dir, err := os.MkdirTemp("", "th")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		_ = os.Remove(dir)
		t.Skipf("no small disk can be mounted here (%v); the other tests of lost output fail a write in other ways", err)
	}
	s := &site{t: t, home: filepath.Join(dir, "h"), exe: lab.Thole(t)}
	t.Cleanup(func() {
		s.run("daemon", "stop")
		_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		_ = os.Remove(dir)
	})
	return s
}

// fill takes all room of the home's disk and returns how to give it back.
func (s *site) fill() (free func()) {
	s.t.Helper()
	name := filepath.Join(filepath.Dir(s.home), "filler")
	f, err := os.Create(name)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			s.t.Fatal(err)
		}
	}
	return func() { _ = os.Remove(name) }
}

// ended is the only job of what job run --wait --json printed.
func (s *site) ended(out string) wire.Job {
	s.t.Helper()
	var jobs []wire.Job
	if err := json.Unmarshal([]byte(out), &jobs); err != nil || len(jobs) != 1 {
		s.t.Fatalf("printed %q: %v", out, err)
	}
	return jobs[0]
}

const incomplete = "output is incomplete"

// A command whose output fills the disk goes on to its end. Its exit status stands,
// and every answer with the result says that it is not all.
func TestOutputFillsTheDisk(t *testing.T) {
	for status, state := range map[int]string{0: "ready", 3: "failed"} {
		t.Run(fmt.Sprint("exit status ", status), func(t *testing.T) {
			s := smallSite(t, "12m")
			out, errs, code := s.run("job", "run", "--target", "desktop", "--thread-id", "t", "--wait", "--json", "--", "sh", "-c",
				fmt.Sprintf("head -c 40000000 /dev/zero | tr '\\0' x; echo the end; exit %d", status))
			if code != status {
				t.Fatalf("exit %d: %s %s", code, out, errs)
			}
			j := s.ended(out)
			if j.Status != state || j.ExitCode == nil || *j.ExitCode != int64(status) || !strings.Contains(j.ResultSummary, fmt.Sprint("exit status ", status)) ||
				!strings.Contains(j.ResultSummary, incomplete) || !strings.Contains(j.ResultSummary, "disk is full") {
				t.Errorf("recorded %s, %v: %s", j.Status, j.ExitCode, j.ResultSummary)
			}
			text, errs, _ := s.run("artifact", "read", "--artifact-id", j.ArtifactID)
			kept := strings.TrimLeft(text, "x")
			if len(text)-len(kept) < 1<<20 || !strings.Contains(kept, incomplete) || strings.Contains(kept, "the end") {
				t.Errorf("kept %d bytes of output and then %q %s", len(text)-len(kept), kept, errs)
			}
			var b wire.Batch
			s.must(&b, "batch", "inspect-head", "--source-thread-id", "t")
			if len(b.Jobs) != 1 || !strings.Contains(b.Jobs[0].ResultSummary, incomplete) {
				t.Errorf("the delivery says %+v", b.Jobs)
			}
			shown, _, _ := s.run("job", "query", j.JobID)
			if !strings.Contains(shown, incomplete) {
				t.Errorf("shown:\n%s", shown)
			}
			if left, _ := os.ReadDir(filepath.Join(s.home, "run")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
			s.must(nil, "check")
		})
	}
}

// A command that filled the disk can be cancelled without anyone making room.
func TestCancelOnTheDiskItFilled(t *testing.T) {
	s := smallSite(t, "12m")
	told := filepath.Join(t.TempDir(), "told")
	var r wire.Submitted
	s.must(&r, "job", "run", "--target", "desktop", "--thread-id", "t", "--", "sh", "-c", "head -c 40000000 /dev/zero; echo > "+told+"; sleep 600")
	poll.Until(t, "the disk is full", func() bool { _, err := os.Stat(told); return err == nil })
	s.must(nil, "job", "cancel", "--job-id", r.JobID)
	if out, _, code := s.run("job", "wait", r.JobID); code != 9 || !strings.Contains(out, "cancelled") {
		t.Errorf("exit %d: %s", code, out)
	}
	poll.Until(t, "no file of the command is left", func() bool {
		left, err := os.ReadDir(filepath.Join(s.home, "run"))
		return err == nil && len(left) == 0
	})
}

// While the disk is full nothing is promised, and what was promised is kept; when
// there is room again, everything goes on, once.
func TestDiskIsFullForAWhile(t *testing.T) {
	s := smallSite(t, "12m")
	var open, running wire.Submitted
	s.must(&open, "job", "submit", "--target", "desktop", "--thread-id", "t", "--summary", "first")
	gate := filepath.Join(t.TempDir(), "gate")
	s.must(&running, "job", "run", "--target", "desktop", "--thread-id", "u", "--", "sh", "-c", "while [ ! -e "+gate+" ]; do sleep 0.05; done; echo lost; exit 9")
	result := filepath.Join(t.TempDir(), "result")
	if err := os.WriteFile(result, []byte(strings.Repeat("r", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	free := s.fill()
	refused := func(what string, args ...string) {
		t.Helper()
		if out, errs, code := s.run(args...); code != 7 || !strings.Contains(errs, "disk is full") {
			t.Errorf("%s on a full disk: exit %d: %s %s", what, code, out, errs)
		}
	}
	// The log of the database has some room of its own: it is used up first.
	refusals := 0
	for n := 0; refusals < 3; n++ {
		if n > 2000 {
			t.Fatal("the store takes jobs without end on a full disk")
		}
		if _, errs, code := s.run("job", "submit", "--target", "desktop", "--thread-id", "t", "--dedupe-key", "again", "--summary", strings.Repeat("s", 2000)); code != 0 {
			refusals++
			if code != 7 || !strings.Contains(errs, "disk is full") {
				t.Fatalf("submit: exit %d: %s", code, errs)
			}
		} else {
			refusals = 0
			s.run("job", "submit", "--target", "desktop", "--thread-id", "t", "--summary", strings.Repeat("s", 2000))
		}
	}
	refused("a completion", "job", "complete", "--job-id", open.JobID, "--result-file", result)
	refused("a command", "job", "run", "--target", "desktop", "--thread-id", "t", "--dedupe-key", "never", "--wait", "--", "sh", "-c", "echo > "+filepath.Join(t.TempDir(), "ran"))
	var j wire.Job
	s.must(&j, "job", "query", open.JobID)
	if j.Status != "running" || j.ArtifactID != "" {
		t.Errorf("a refused completion left %s with %q", j.Status, j.ArtifactID)
	}
	if left, _ := os.ReadDir(filepath.Join(s.home, "artifacts")); len(left) != 0 {
		t.Errorf("a refused completion left %v", left)
	}

	// A command that ends now has its room.
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := s.run("job", "wait", running.JobID, "--timeout", "90s"); code != 9 || !strings.Contains(out, incomplete) {
		t.Errorf("a command that ended on a full disk: exit %d: %s %s", code, out, errs)
	}
	free()
	s.must(&j, "job", "complete", "--job-id", open.JobID, "--result-file", result)
	if j.Status != "ready" {
		t.Errorf("completed when there was room again: %s", j.Status)
	}
	if files, _ := os.ReadDir(filepath.Join(s.home, "artifacts")); len(files) != 4 { // two results, each with its manifest
		t.Errorf("artifacts: %v", files)
	}
	out, errs, code := s.run("job", "run", "--target", "desktop", "--thread-id", "t", "--wait", "--", "true")
	if code != 0 {
		t.Errorf("a command when there was room again: exit %d: %s %s", code, out, errs)
	}
	s.must(nil, "check")
	var jobs []wire.Job
	s.must(&jobs, "job", "list", "--limit", "1000")
	keys := map[string]int{}
	for _, j := range jobs {
		keys[j.DedupeKey]++
	}
	if keys["again"] > 1 || keys["never"] > 1 {
		t.Errorf("doubled: %v", keys)
	}
	poll.Until(t, "no file of a command is left", func() bool {
		left, err := os.ReadDir(filepath.Join(s.home, "run"))
		return err == nil && len(left) == 0
	})
}

// A write can fail for other reasons than a full disk.
func TestOutputOverTheSizeOfAFile(t *testing.T) {
	s := newSite(t)
	s.exe = lab.Thole(t)
	s.must(nil, "job", "list") // the daemon starts without the limit
	cmd := s.command("job", "run", "--target", "desktop", "--thread-id", "t", "--wait", "--json", "--", "sh", "-c", "head -c 5000000 /dev/zero; exit 4")
	limited := s.command()
	limited.Path, limited.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -f 400; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	out, errs, code := capture(limited)
	if j := s.ended(out); code != 4 || j.ExitCode == nil || *j.ExitCode != 4 || !strings.Contains(j.ResultSummary, incomplete) {
		t.Errorf("exit %d: %s %s", code, j.ResultSummary, errs)
	}
	s.must(nil, "check")
}

// Who reads the result decides nothing about it: the exit status of the command
// stands when nobody reads any more, or the reader's disk is full.
func TestNobodyReadsTheResult(t *testing.T) {
	s := newSite(t)
	s.exe = lab.Thole(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer w.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, json := range []string{"--json=false", "--json"} {
		for name, c := range map[string]struct {
			to           *os.File
			status, want int
		}{"closed": {w, 0, 0}, "closed, failing": {w, 6, 6}, "full": {full, 0, 7}, "full, failing": {full, 6, 6}} {
			var said strings.Builder
			cmd := s.command("job", "run", json, "--target", "desktop", "--thread-id", "t", "--wait", "--", "sh", "-c", fmt.Sprintf("exit %d", c.status))
			cmd.Stdout, cmd.Stderr = c.to, &said
			_ = cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code != c.want || (c.to == full) != strings.Contains(said.String(), "write output") {
				t.Errorf("%s %s: exit %d, want %d; said %q", json, name, code, c.want, said.String())
			}
		}
	}
}
