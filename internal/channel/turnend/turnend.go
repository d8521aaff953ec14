// Package turnend judges whether a turn of a Codex thread is over.
//
// A server's history calls a turn that runs "interrupted" for moments, without the
// time of its end, and calls one that was cut off the same. So the status that was
// read of a turn cannot be looked at outside this package: a Judge takes
// everything that was seen and reported of one turn, and nobody makes a verdict of one
// read. What is no verdict is a running turn, to be looked at again.
package turnend

import (
	"bytes"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// Read is a turn as a server showed it once: in its history, or in the
// announcement of its end.
type Read struct {
	id, status string
	completed  string // when it ended, as it was on the wire; "": no time was reported
}

// ID is the turn's.
func (r Read) ID() string { return r.id }

// UnmarshalJSON reads a turn of the wire.
func (r *Read) UnmarshalJSON(b []byte) error {
	var w struct {
		ID        string          `json:"id"`
		Status    string          `json:"status"`
		Completed json.RawMessage `json:"completedAt"`
	}
	if err := strictjson.Unmarshal(b, &w); err != nil {
		return err
	}
	*r = Read{id: w.ID, status: w.Status}
	if c := bytes.TrimSpace(w.Completed); len(c) > 0 && !bytes.Equal(c, []byte("null")) {
		r.completed = string(c)
	}
	return nil
}

// ends are the words for an end. A server may one day say replaced.
var ends = map[string]thole.TurnEvent{
	"completed": thole.TurnEventCompleted, "failed": thole.TurnEventFailed,
	"interrupted": thole.TurnEventInterrupted, "replaced": thole.TurnEventReplaced,
}

// Judge collects what was seen of one turn. Its zero value has seen nothing.
type Judge struct {
	completed Read // by turn/completed
	last, now Read // the last two reads of the history
}

// Completed takes what turn/completed reported, the zero Read if it did not arrive.
func (j *Judge) Completed(r Read) {
	if r.id != "" {
		j.completed = r
	}
}

// Saw takes one read of the history, nil if the turn was not in it.
func (j *Judge) Saw(r *Read) {
	j.last, j.now = j.now, Read{}
	if r != nil {
		j.now = *r
	}
}

// Verdict is how the turn ended and by what that is known, "" while it must be
// taken as running. What was announced is an end. A read is one only with the time
// of the end; and that a turn did not complete takes two reads that agree.
func (j *Judge) Verdict() (end thole.TurnEvent, proof string) {
	if end = ends[j.completed.status]; end != "" {
		return end, "turn/completed says that the turn is " + j.completed.status
	}
	end = ends[j.now.status]
	switch {
	case end == "" || j.now.completed == "":
		return "", ""
	case end == thole.TurnEventCompleted:
		return end, "the turn is completed in the thread's history, at " + j.now.completed
	case j.now != j.last:
		return "", ""
	}
	return end, "two reads of the thread's history agree that the turn is " + j.now.status + ", at " + j.now.completed
}
