package lab

import (
	"errors"
	"testing"
)

// witness is a test that only notes how it was ended.
type witness struct {
	testing.TB
	skipped, failed bool
}

func (w *witness) Helper()               {}
func (w *witness) Skipf(string, ...any)  { w.skipped = true }
func (w *witness) Fatalf(string, ...any) { w.failed = true }

func TestAMissingPartSkipsHereAndFailsInCI(t *testing.T) {
	for _, tc := range []struct {
		ci              string
		err             error
		skipped, failed bool
	}{
		{"", nil, false, false},
		{"true", nil, false, false},
		{"", errors.New("not installed"), true, false},
		{"true", errors.New("not installed"), false, true},
	} {
		t.Setenv("CI", tc.ci)
		w := &witness{}
		Need(w, "part", tc.err)
		if w.skipped != tc.skipped || w.failed != tc.failed {
			t.Errorf("CI=%q, %v: skipped %v, failed %v", tc.ci, tc.err, w.skipped, w.failed)
		}
	}
}

func TestAPartThatIsNotInstalledSaysHowToGetIt(t *testing.T) {
	t.Setenv("THOLE_LAB", t.TempDir())
	if _, err := cached("codex-*/codex", "codex"); err == nil || err.Error() != "not installed (scripts/lab install codex)" {
		t.Error(err)
	}
	if _, err := command("no-such-program", "some-package"); err == nil || err.Error() != "no-such-program not found (apt-get install some-package)" {
		t.Error(err)
	}
}
