package cli

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
)

func newBatch(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "batch", Short: "List, inspect, deliver and close batches of results"}
	cmd.AddCommand(newBatchInspect(env), newBatchInspectHead(env), newBatchCloseHead(env), newBatchDeliver(env), newBatchList(env))
	return cmd
}

func newBatchInspect(env *Env) *cobra.Command {
	var p wire.BatchParams
	cmd := &cobra.Command{
		Use: "inspect [BATCH]", Short: "Show a batch's jobs, attempts and audit trail; without one, of all that are held for a human", Args: named(&p.BatchID, "batch-id"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.BatchID == "" {
				return env.showHeld(cmd)
			}
			return env.showBatch(cmd, wire.BatchInspect, p)
		},
	}
	cmd.Flags().StringVar(&p.BatchID, "batch-id", "", "same as BATCH")
	return cmd
}

// showHeld shows every batch that waits for a human, and what to type.
func (e *Env) showHeld(cmd *cobra.Command) error {
	var held []wire.Batch
	if err := e.ask(cmd.Context(), wire.BatchList, wire.BatchListParams{Held: true, Limit: 50}, &held); err != nil {
		return err
	}
	for i, b := range held {
		if err := e.ask(cmd.Context(), wire.BatchInspect, wire.BatchParams{BatchID: b.BatchID}, &held[i]); err != nil {
			return err
		}
	}
	return e.print(held, func(w io.Writer) {
		if len(held) == 0 {
			putln(w, "no batch waits for a human; thole batch list shows all")
		}
		for i, b := range held {
			if i > 0 {
				putln(w)
			}
			printBatch(w, b)
		}
	})
}

func newBatchInspectHead(env *Env) *cobra.Command {
	var p wire.BatchParams
	cmd := &cobra.Command{
		Use: "inspect-head THREAD", Short: "Show the first batch of a thread", Args: named(&p.SourceThreadID, "source-thread-id"),
		RunE: func(cmd *cobra.Command, _ []string) error { return env.showBatch(cmd, wire.BatchHead, p) },
	}
	threadFlags(cmd, &p.SourceThreadID, &p.Endpoint)
	return cmd
}

func newBatchCloseHead(env *Env) *cobra.Command {
	var p wire.BatchParams
	cmd := &cobra.Command{
		Use: "close-head THREAD", Short: "Close the first batch of a thread without sending it, so that the next one can go", Args: named(&p.SourceThreadID, "source-thread-id"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.Reason == "" {
				return thole.Errorf(thole.CodeInvalid, "no reason").WithHint("pass --reason operator_closed_unconfirmed or operator_confirmed_delivery")
			}
			return env.showBatch(cmd, wire.BatchClose, p)
		},
	}
	threadFlags(cmd, &p.SourceThreadID, &p.Endpoint)
	cmd.Flags().StringVar(&p.Reason, "reason", "", "operator_closed_unconfirmed, operator_confirmed_delivery or cancelled")
	cmd.Flags().StringVar(&p.BatchID, "batch-id", "", "close only if this batch is first, or held because no channel reaches it")
	return cmd
}

func newBatchDeliver(env *Env) *cobra.Command {
	var p wire.DeliverParams
	cmd := &cobra.Command{
		Use: "deliver BATCH", Short: "Send a batch that is held for a human", Args: exactly(1, "one batch id; thole batch list --held shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.BatchID = args[0]
			var b wire.Batch
			if err := env.ask(cmd.Context(), wire.BatchDeliver, p, &b); err != nil {
				return err
			}
			return env.print(b, func(w io.Writer) { printBatch(w, b) })
		},
	}
	cmd.Flags().BoolVar(&p.Anyway, "anyway", false, "send it although it may have reached the thread already: the agent may read it twice, and you answer for that")
	return cmd
}

func threadFlags(cmd *cobra.Command, thread, endpoint *string) {
	cmd.Flags().StringVar(thread, "source-thread-id", "", "same as THREAD")
	cmd.Flags().StringVar(endpoint, "endpoint", "", "home the thread lives in, where its id is not enough")
}

func newBatchList(env *Env) *cobra.Command {
	var p wire.BatchListParams
	cmd := &cobra.Command{
		Use: "list", Short: "List batches, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var out []wire.Batch
			if err := env.ask(cmd.Context(), wire.BatchList, p, &out); err != nil {
				return err
			}
			return env.print(out, func(w io.Writer) {
				t := newTable(w)
				putf(t, "BATCH\tTHREAD\tTARGET\tATTEMPTS\tREADY\tSTATUS\tSUMMARY\n")
				for _, b := range out {
					putf(t, "%s\t%s\t%s\t%d/%d\t%s\t%s\t%s\n", b.BatchID, b.SourceThreadID, b.TargetKind, b.DeliveryAttemptCount, b.MaxDeliveryAttempts,
						local(b.FirstReadyAt), batchStatus(b), b.Summary)
				}
				_ = t.Flush()
			})
		},
	}
	cmd.Flags().StringVar(&p.ThreadID, "source-thread-id", "", "only batches of this thread")
	cmd.Flags().BoolVar(&p.Open, "open", false, "only batches that are not closed")
	cmd.Flags().BoolVar(&p.Held, "held", false, "only batches that wait for a human")
	cmd.Flags().IntVar(&p.Limit, "limit", 50, "at most this many")
	return cmd
}

func (e *Env) showBatch(cmd *cobra.Command, method string, p wire.BatchParams) error {
	if method != wire.BatchInspect && p.SourceThreadID == "" {
		return thole.Errorf(thole.CodeInvalid, "no thread").WithHint("name it: thole batch list shows the thread of each batch")
	}
	var b wire.Batch
	if err := e.ask(cmd.Context(), method, p, &b); err != nil {
		return err
	}
	return e.print(b, func(w io.Writer) { printBatch(w, b) })
}

// batchStatus is one phrase for where a batch stands.
func batchStatus(b wire.Batch) string {
	switch {
	case b.CloseReason != "":
		return "closed: " + b.CloseReason
	case b.ReplayPolicy == string(thole.ReplayManual):
		return "held for a human: " + b.HeldFor
	case b.State == string(thole.BatchCooldown):
		return "accepted, being followed"
	case b.State == string(thole.BatchQueued):
		return "collecting"
	case slices.ContainsFunc(b.Attempts, func(a wire.Attempt) bool { return a.State == string(thole.AttemptAcceptPending) }):
		return "sent, not known yet whether it was accepted"
	}
	return "waiting to be sent"
}

func printBatch(w io.Writer, b wire.Batch) {
	putf(w, "batch %s: %s\n", b.BatchID, batchStatus(b))
	t := newTable(w)
	putf(t, "  thread\t%s (%s)\n", b.SourceThreadID, b.TargetKind)
	putf(t, "  attempts\t%d of %d accepted\n", b.DeliveryAttemptCount, b.MaxDeliveryAttempts)
	putf(t, "  window ends\t%s\n", local(b.RedeliveryWindowEndsAt))
	for _, a := range b.Attempts {
		putf(t, "  attempt %d\t%s %s %s %s\n", a.Generation, a.State, a.DeliveryRPCState, a.DeliveryObservationState, a.LastObservedTurnEvent)
	}
	_ = t.Flush()
	for _, j := range b.Jobs {
		putf(w, "  job %s %s: %s\n", j.JobID, j.Status, cmp.Or(j.ResultSummary, j.TaskSummary))
	}
	if len(b.Ledger) > 0 {
		putln(w, "ledger:")
		t = newTable(w)
		for _, a := range b.Ledger {
			ledgerLine(t, a)
		}
		_ = t.Flush()
	}
	if len(b.Next) > 0 {
		putln(w, "next:")
		for _, n := range b.Next {
			putln(w, " ", n)
		}
	}
}

func proofText(proof map[string]string) string {
	keys := make([]string, 0, len(proof))
	for k := range proof {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = k + "=" + proof[k]
	}
	return strings.Join(parts, " ")
}
