package process

import (
	"slices"
	"testing"
)

// A process that carries the variable is found, however it left its parent; a value that
// only begins the same is another.
func TestMarked(t *testing.T) {
	p := shell(t, `export MARK=one; setsid sh -c 'echo $$; exec sleep 300' & MARK=one2 sh -c 'echo $$; exec sleep 300' & wait`)
	started := pids(t, p, 2)
	found, err := Marked("MARK=one")
	if err != nil {
		t.Fatal(err)
	}
	other, err := Marked("MARK=one2")
	if err != nil || len(other) != 1 || !slices.Contains(started, other[0]) || slices.Contains(found, other[0]) {
		t.Errorf("%v, %v of %v; %v", found, other, started, err)
	}
	for _, pid := range started {
		if pid != other[0] && !slices.Contains(found, pid) {
			t.Errorf("%d is not among %v", pid, found)
		}
	}
}
