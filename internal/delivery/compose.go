package delivery

import (
	"cmp"
	"fmt"
	"strings"

	thole "github.com/tholehq/thole"
)

// Compose writes what the receiving turn reads. It is a function of the parcel
// alone: the same batch always reads the same, apart from its marker.
func Compose(p Parcel) string {
	var w strings.Builder
	n := len(p.Jobs)
	if n == 1 {
		w.WriteString("A background job of this thread has ended.\n")
	} else {
		fmt.Fprintf(&w, "%d background jobs of this thread have ended, oldest first.\n", n)
	}
	for i := range p.Jobs {
		composeJob(&w, &p.Jobs[i], 0)
	}
	if p.Attempt.RPC.Marker != "" {
		fmt.Fprintf(&w, "\n[delivery %s]\n", p.Attempt.RPC.Marker)
	}
	return w.String()
}

func composeJob(w *strings.Builder, j *ParcelJob, depth int) {
	pad := strings.Repeat("  ", depth)
	outcome := "completed"
	if j.State == thole.JobFailed {
		outcome = "failed"
	}
	fmt.Fprintf(w, "\n%sjob %s (%s) %s: %s\n", pad, j.ID, cmp.Or(j.TaskKind, "task"), outcome, cmp.Or(j.TaskSummary, "no summary"))
	if j.ResultSummary != "" {
		fmt.Fprintf(w, "%sresult: %s\n", pad, j.ResultSummary)
	}
	if j.Inline != "" {
		fmt.Fprintf(w, "%soutput:\n%s\n", pad, strings.TrimRight(j.Inline, "\n"))
	}
	if j.RequiresArtifactRead {
		fmt.Fprintf(w, "%sthe full result is artifact %s (thole artifact read --artifact-id %s)\n", pad, j.Artifact, j.Artifact)
	}
	for i := range j.Children {
		composeJob(w, &j.Children[i], depth+1)
	}
}

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
