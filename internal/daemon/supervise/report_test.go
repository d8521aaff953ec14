package supervise

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"

	thole "github.com/tholehq/thole"
)

// A result that cannot be stored is reported until the owner has it: nobody else knows
// it. One that is stored is left to the owner in the end.
func TestTellUntilItIsKnown(t *testing.T) {
	for name, c := range map[string]struct{ unstorable, left bool }{"stored": {false, true}, "not stored": {true, false}} {
		t.Run(name, func(t *testing.T) {
			home, job := t.TempDir(), thole.JobID("j")
			result := file(home, job, ".result")
			if err := os.MkdirAll(dirOf(home), 0o700); err != nil {
				t.Fatal(err)
			}
			if c.unstorable { // a directory in its place fails as a full disk does
				if err := os.Mkdir(result, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			const until = 3 * tries
			told := 0
			synctest.Test(t, func(t *testing.T) {
				err := reportResult(context.Background(), Spec{Home: home, Job: job, Report: func(_ context.Context, r Result) error {
					if told++; told < until {
						return errors.New("the disk is full")
					}
					return nil
				}}, Result{State: thole.JobReady, Summary: "s"})
				if (err != nil) != c.left {
					t.Errorf("ended with %v", err)
				}
			})
			if want := map[bool]int{true: tries, false: until}[c.left]; told != want {
				t.Errorf("told %d times, want %d", told, want)
			}
			if _, err := os.Stat(result); (err == nil) != c.left {
				t.Errorf("the result file afterwards: %v", err)
			}
		})
	}
}
