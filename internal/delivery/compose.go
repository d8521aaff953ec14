package delivery

import (
	"cmp"
	"fmt"
)

// summarize is the one line that stands for a batch in lists.
func summarize(jobs []Job) string {
	if len(jobs) == 0 {
		return ""
	}
	first := cmp.Or(jobs[0].ResultSummary, jobs[0].TaskSummary)
	if len(jobs) == 1 {
		return first
	}
	return fmt.Sprintf("%s (and %d more)", first, len(jobs)-1)
}
