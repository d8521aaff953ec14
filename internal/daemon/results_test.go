package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/daemon/wire"
)

// A result file may have any name that the system allows, and is read back whole, in
// parts, and not at all under a lease that was revoked.
func TestResultFilesOfAnyName(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	for _, name := range []string{"plain.txt", "-x", "two\nlines", "\xff\xfe.log", "ü … 日本", "' \"; $(x)"} {
		content := strings.Repeat("0123456789", 2000) + name
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var r wire.Submitted
		s.must(&r, "job", "submit", "--target", "desktop", "--thread-id", "t")
		var j wire.Job
		s.must(&j, "job", "complete", "--job-id", r.JobID, "--summary", "done", "--result-file", file)
		if out, errs, code := s.run("artifact", "read", j.ArtifactID); code != 0 || out != content {
			t.Fatalf("%q: exit %d, %d bytes of %d: %s", name, code, len(out), len(content), errs)
		}
		if out, _, code := s.run("artifact", "read", j.ArtifactID, "--offset", "19995", "--max-bytes", "5"); code != 0 || out != "56789" {
			t.Errorf("%q: a part is %q, exit %d", name, out, code)
		}
		var a wire.Artifact
		s.must(&a, "artifact", "inspect", j.ArtifactID)
		if a.SizeBytes != int64(len(content)) || a.Damage != "" || !a.Held || a.SourceJobID != r.JobID {
			t.Errorf("%q: %+v", name, a)
		}
		var l wire.Lease
		s.must(&l, "artifact", "read", j.ArtifactID)
		s.must(nil, "artifact", "revoke", l.LeaseID)
		if out, _, code := s.run("artifact", "read", "--artifact-read-lease-id", l.LeaseID); code == 0 || out != "" {
			t.Errorf("%q: a revoked lease reads %q", name, out)
		}
		var long, short wire.Artifact
		s.must(&long, "artifact", "pin", j.ArtifactID, "--for", "100h")
		s.must(&short, "artifact", "pin", j.ArtifactID, "--for", "1h")
		if !short.OperatorPinUntil.Equal(long.OperatorPinUntil) {
			t.Errorf("%q: a pin shrank from %v to %v", name, long.OperatorPinUntil, short.OperatorPinUntil)
		}
		if err := os.WriteFile(a.ManagedPath, []byte("other"), 0o600); err != nil {
			t.Fatal(err)
		}
		s.must(&a, "artifact", "inspect", j.ArtifactID)
		if a.Damage == "" {
			t.Errorf("%q: the damage is not seen", name)
		}
	}
}
