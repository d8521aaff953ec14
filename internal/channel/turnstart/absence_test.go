package turnstart

import (
	"testing"
	"time"
)

// A message that a running turn may have taken is missed only when no turn runs any more:
// until the turn has read it, it is in no history.
func TestAbsenceWhileATurnRuns(t *testing.T) {
	begin := time.Now()
	for name, c := range map[string]struct {
		idle, mayBeInATurn bool
		looks              int // of one a second until it is missed; 0: never
	}{
		"queued, idle":  {idle: true, looks: absentLooks},
		"queued, busy":  {looks: 1 + int(absentBusy/time.Second)},
		"steered, idle": {idle: true, mayBeInATurn: true, looks: absentLooks},
		"steered, busy": {mayBeInATurn: true},
	} {
		var g absence
		got := 0
		for look := 1; look <= 100 && got == 0; look++ {
			if g.missed(begin.Add(time.Duration(look)*time.Second), c.idle, c.mayBeInATurn) {
				got = look
			}
		}
		if got != c.looks {
			t.Errorf("%s: missed after %d looks, want %d", name, got, c.looks)
		}
	}
	var g absence
	for look := range 3 {
		g.missed(begin.Add(time.Duration(look)*time.Minute), true, true)
	}
	if g.missed(begin.Add(3*time.Minute), false, true); g.looks != 0 {
		t.Error("looks before a turn began count after it")
	}
}
