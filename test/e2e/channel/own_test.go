package channel

import (
	"testing"
)

// A result for a thread that does not exist is held, and the submitter is told at
// once.
func TestUnknownOwnThreadIsHeld(t *testing.T) {
	d := newDesk(t)
	var j struct {
		JobID    string `json:"job_id"`
		Delivery struct {
			Reasons []string `json:"reasons"`
		} `json:"delivery"`
	}
	d.thole(&j, "job", "submit", "--target", "thole", "--thread-id", "01a1dd87-43ed-7176-ad96-f0dfb0acb3e3")
	if len(j.Delivery.Reasons) == 0 {
		t.Error("nothing said that the thread does not exist")
	}
	d.thole(nil, "job", "complete", "--job-id", j.JobID, "--summary", "done")
	if b := d.fate(); b.HeldFor != "policy" || b.Attempts != 0 {
		t.Errorf("%+v", b)
	}
}
