package crash

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tholehq/thole/internal/sqldb"
)

// Act is a call that is to be exactly one durable step.
type Act struct {
	Name string
	Set  func() error // what has to be there first; nobody is killed in it
	Do   func() error
}

// Stage is a store with acts to do on it. It repeats itself exactly: its clock
// and its ids are its own.
type Stage interface {
	Acts() []Act
	// State is everything the acts may change, in one line.
	State() (string, error)
	Close() error
}

// Acts kills a child before and after the commit of each act. What is left must
// be, row for row, the state before that act or the state after it, as the run to
// the end saw them. Then check judges the stage opened again; done names the acts
// whose effect is there.
func Acts[S Stage](t *testing.T, open func(dir string, hook sqldb.Hook) (S, error), check func(t *testing.T, s S, done []string)) {
	t.Helper()
	var full []string
	Enumerate(t, func(w *Work) error { return perform(w, open) }, func(t *testing.T, dir string, acked []string, killed string) {
		if killed == "" {
			full = acked
		}
		at := len(acked) - 1
		for i, line := range acked {
			if line != full[i] {
				t.Fatalf("the acts differ from run to run:\n%s\n%s", line, full[i])
			}
		}
		if strings.HasPrefix(killed, string(sqldb.AfterCommit)) {
			at++
		}
		s, err := open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		got, err := s.State()
		if err != nil {
			t.Fatal(err)
		}
		place, want, _ := strings.Cut(full[at], "\t")
		if got != want {
			from := 0
			for from < min(len(got), len(want)) && got[from] == want[from] {
				from++
			}
			from = max(0, from-100)
			t.Fatalf("not the state %s:\n got …%.400s\nwant …%.400s", place, got[from:], want[from:])
		}
		var done []string
		for _, line := range full[:at+1] {
			if name, after := strings.CutPrefix(line[:strings.IndexByte(line, '\t')], "after "); after {
				done = append(done, name)
			}
		}
		check(t, s, done)
	})
}

// perform does the acts in the child, noting the state before and after each.
func perform[S Stage](w *Work, open func(dir string, hook sqldb.Hook) (S, error)) error {
	var acting atomic.Bool
	var commits atomic.Int64
	s, err := open(w.Dir, func(p sqldb.Point, step string) {
		if acting.Load() {
			if p == sqldb.BeforeCommit {
				commits.Add(1)
			}
			w.Hook(p, step)
		}
	})
	if err != nil {
		return err
	}
	note := func(when string, a Act) error {
		state, err := s.State()
		if err == nil {
			w.Ack(when + " " + a.Name + "\t" + state)
		}
		return err
	}
	for _, a := range s.Acts() {
		if a.Set != nil {
			if err := a.Set(); err != nil {
				return fmt.Errorf("set %s: %w", a.Name, err)
			}
		}
		if err := note("before", a); err != nil {
			return err
		}
		commits.Store(0)
		acting.Store(true)
		err := a.Do()
		acting.Store(false)
		if err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		if n := commits.Load(); n != 1 {
			return fmt.Errorf("%s took %d durable steps, want 1", a.Name, n)
		}
		if err := note("after", a); err != nil {
			return err
		}
	}
	return s.Close()
}
