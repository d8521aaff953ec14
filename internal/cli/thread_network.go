package cli

import (
	"cmp"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/platform/view"
)

func newThreadNetwork(env *Env) *cobra.Command {
	var set reach
	cmd := &cobra.Command{
		Use: "network THREAD", Short: "Show what a thread's turns connected to, and set what they may", Args: cobra.ExactArgs(1),
		Long: "Lists every target that the processes of a thread's agent connected to or were refused, by turn: connections, bytes\n" +
			"and times. A turn is recorded when it ends; before that its executor is asked. With --set the thread may reach less\n" +
			"than egress.policy allows, from now on: open connections that it refuses are cut. No thread may reach more.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var r executors.NetworkResult
			if err := env.ask(cmd.Context(), executors.MethodNetwork, executors.NetworkParams{Thread: thole.ThreadID(args[0]), Set: set.policy()}, &r); err != nil {
				return err
			}
			return env.print(r, func(w io.Writer) { printReach(w, r.Reach); printNetwork(w, r.Runs) })
		},
	}
	set.flags(cmd, "set")
	return cmd
}

// reach is a thread's policy as flags say it.
type reach struct {
	name  string
	allow []string
}

func (r *reach) flags(cmd *cobra.Command, name string) {
	cmd.Flags().StringVar(&r.name, name, "", "what the agent may reach over the network: none, gateway (its models), list, open, or default (what the configuration allows)")
	cmd.Flags().StringArrayVar(&r.allow, "allow", nil, "HOST[:PORT] or *.HOST of policy list, which it implies; may be repeated")
}

// policy is nil where no flag was given.
func (r *reach) policy() *event.NetworkPolicy {
	if r.name == "" && len(r.allow) == 0 {
		return nil
	}
	return &event.NetworkPolicy{Policy: cmp.Or(r.name, string(egress.List)), Allow: r.allow}
}

func printReach(w io.Writer, r view.Reach) {
	text := "network " + r.Policy
	if len(r.Allow) > 0 {
		text += ": " + strings.Join(r.Allow, ", ")
	}
	if r.Policy != r.Ceiling {
		text += " (egress.policy " + r.Ceiling + ")"
	}
	if len(r.Models) > 0 {
		text += "; models " + strings.Join(r.Models, ", ")
	}
	putln(w, text)
}

func printNetwork(w io.Writer, runs []view.RunNetwork) {
	t := newTable(w)
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
