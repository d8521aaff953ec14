package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tholehq/thole/internal/daemon/threads"
)

// showThreads makes thole alone show the threads of the repository that the user is in, and
// elsewhere how to begin.
func showThreads(env *Env, root *cobra.Command) {
	named := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return named(cmd, args)
		}
		return env.alone(cmd.Context())
	}
}

// recent is how many threads thole alone shows.
const recent = 10

// overview is what thole alone prints with --json.
type overview struct {
	Repo    string           `json:"repo,omitempty"`
	Threads []threads.Thread `json:"threads"`
}

func (e *Env) alone(ctx context.Context) error {
	top := repositoryTop("")
	home, err := e.home()
	if err != nil {
		return err
	}
	out := overview{Repo: top, Threads: []threads.Thread{}}
	whose := ""
	if _, err := os.Stat(home); err == nil && (top != "" || e.JSON) { // else there is none, and looking would make a home
		if out.Threads, err = e.find(ctx, threads.FindParams{Within: top, Limit: recent}); err != nil {
			return err
		}
		if whose = "threads of " + filepath.Base(top); len(out.Threads) == 0 && top != "" {
			whose = "no thread of " + filepath.Base(top) + " yet; the newest of others"
			if out.Threads, err = e.find(ctx, threads.FindParams{Limit: recent}); err != nil {
				return err
			}
		}
	}
	return e.print(out, func(w io.Writer) {
		if len(out.Threads) == 0 {
			e.printBegin(w, top)
			return
		}
		e.paint(w, bold, func(w io.Writer) { put(w, whose) })
		putln(w)
		putln(w)
		e.printThreadTable(w, out.Threads, time.Now())
		e.printSteps(w, out.Threads)
	})
}

// printBegin is the short help.
func (e *Env) printBegin(w io.Writer, top string) {
	putln(w, "thole has coding agents work for you, in threads that stay.")
	putln(w)
	step := func(command, does string) { putf(w, "  %-24s %s\n", e.program(command), does) }
	if top == "" {
		putln(w, "Go to a git repository, then:")
	} else {
		putln(w, "No thread yet. Begin here:")
	}
	putln(w)
	step(`run "…"`, "have an agent work on it, on a branch of its own")
	step("ps", "see what threads do now")
	step("inbox", "answer what agents ask")
	step("up", "open the same with a web page")
	step("up --demo", "try it without an agent or a key")
	step("--help", "see all commands")
}

// printSteps says what one would do next, with real ids.
func (e *Env) printSteps(w io.Writer, list []threads.Thread) {
	ids := shortIDs(list)
	step := func(what, command string) { putf(w, "  %-20s %s\n", what, e.program(command)) }
	putln(w)
	pick := func(status string) string {
		for i, t := range list {
			if t.Status == status {
				return ids[i]
			}
		}
		return ""
	}
	if pick(threads.StatusWaiting) != "" {
		step("answer what waits", "inbox")
	}
	if id := pick(threads.StatusRunning); id != "" {
		step("follow", "thread tail "+id)
	}
	if id := pick(threads.StatusFailed); id != "" {
		step("see why it failed", "thread show "+id)
	}
	step("see the changes", "thread diff "+ids[0])
	step("go on", "thread send "+ids[0]+` "…"`)
	step("begin another", `run "…"`)
}
