package turnend

import (
	"encoding/json"
	"fmt"
	"testing"

	thole "github.com/tholehq/thole"
)

// Every announcement, and every two reads in a row, of every status with and
// without times: nothing negative comes of one read, and nothing at all of a read
// without times.
func TestEveryPairOfReads(t *testing.T) {
	statuses := []string{"", "inProgress", "completed", "failed", "interrupted", "replaced", "vanished"}
	times := []string{"", `,"completedAt":null,"durationMs":null`, `,"completedAt":null,"durationMs":5`, `,"completedAt":7,"durationMs":5`, `,"completedAt":8,"durationMs":5`}
	type seen struct {
		read   *Read
		status string
		time   string
	}
	cases := []seen{{}} // not in the history
	for _, status := range statuses {
		for i, when := range times {
			r := new(Read)
			if err := json.Unmarshal(fmt.Appendf(nil, `{"id":"t","items":[],"status":%q%s}`, status, when), r); err != nil {
				t.Fatal(err)
			}
			at := ""
			if i >= 3 {
				at = when
			}
			cases = append(cases, seen{r, status, at})
		}
	}
	over := func(status string) bool {
		return status == "completed" || status == "failed" || status == "interrupted" || status == "replaced"
	}
	n := 0
	for _, told := range cases {
		for _, first := range cases {
			for _, second := range cases {
				var j Judge
				if told.read != nil {
					j.Completed(*told.read)
				}
				j.Completed(Read{}) // another look at an announcement that was not heard
				j.Saw(first.read)
				j.Saw(second.read)
				want := ""
				switch {
				case over(told.status):
					want = told.status
				case second.status == "completed" && second.time != "":
					want = "completed"
				case over(second.status) && second.time != "" && second.status == first.status && second.time == first.time:
					want = second.status
				}
				event := thole.TurnEvent("")
				if want != "" {
					event = thole.TurnEvent("turn_" + want)
				}
				got, proof := j.Verdict()
				if got != event || (got == "") != (proof == "") {
					t.Fatalf("told %+v, saw %+v and %+v: %q by %q, want %q", told, first, second, got, proof, event)
				}
				n++
			}
		}
	}
	if want := 36 * 36 * 36; n != want {
		t.Errorf("%d cases, want %d", n, want)
	}
}

// One read of a fresh judge, and reads that are not next to each other.
func TestReadsMustFollowEachOther(t *testing.T) {
	cut := &Read{id: "t", status: "interrupted", completed: "7"}
	var j Judge
	for i, r := range []*Read{cut, nil, cut, {id: "t", status: "inProgress"}, cut} {
		j.Saw(r)
		if got, _ := j.Verdict(); got != "" {
			t.Fatalf("read %d: %s", i, got)
		}
	}
	j.Saw(cut)
	if got, _ := j.Verdict(); got != thole.TurnEventInterrupted {
		t.Fatalf("%q", got)
	}
}
