package cli

import (
	"io"
	"net"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/platform/view"
)

func newThreadNetwork(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "network THREAD", Short: "Show what a thread's turns connected to", Args: cobra.ExactArgs(1),
		Long: "Lists every target that the processes of a thread's agent connected to or were refused, by turn: connections, bytes\n" +
			"and times. A turn is recorded when it ends; before that its executor is asked. egress.policy says what is refused.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var r executors.NetworkResult
			if err := env.ask(cmd.Context(), executors.MethodNetwork, executors.NetworkParams{Thread: thole.ThreadID(args[0])}, &r); err != nil {
				return err
			}
			return env.print(r, func(w io.Writer) { printNetwork(w, r.Runs) })
		},
	}
}

func printNetwork(w io.Writer, runs []view.RunNetwork) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	putf(t, "TURN\tTARGET\tVERDICT\tCONNECTIONS\tSENT\tRECEIVED\tFIRST\tLAST\tWHY\n")
	for _, r := range runs {
		turn := r.RunID
		switch {
		case turn == "":
			turn = "between turns"
		case r.Live:
			turn += " (running)"
		}
		for _, f := range r.Traffic {
			putf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n", turn, oneLine(targetOf(f), 80), oneLine(f.Verdict, 20), f.Connections, f.Sent, f.Received,
				f.First.Local().Format(time.DateTime), f.Last.Local().Format(time.TimeOnly), oneLine(f.Why, 120))
		}
	}
	_ = t.Flush()
}

func targetOf(f event.Traffic) string {
	switch {
	case f.Host == "":
		return "(others)"
	case f.Port == 0:
		return f.Host
	}
	return net.JoinHostPort(f.Host, strconv.Itoa(f.Port))
}
