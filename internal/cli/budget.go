package cli

import (
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/platform/spend"
)

func newBudget(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "budget", Short: "Limit what turns may spend"}
	cmd.AddCommand(newBudgetSet(env), newBudgetList(env), newBudgetShow(env), newBudgetRemove(env))
	return cmd
}

func newBudgetSet(env *Env) *cobra.Command {
	var p spend.SetParams
	soft := int64(80)
	cmd := &cobra.Command{
		Use: "set SCOPE[:ID] LIMIT [LIMIT]", Short: "Set a limit in money, in tokens, or both", Args: cobra.RangeArgs(2, 3),
		Example: "  thole budget set user '$20'\n  thole budget set thread:ID '2M tokens' --action warn\n  thole budget set turn '$1' '500k tokens'",
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Scope, p.Subject, _ = strings.Cut(args[0], ":")
			p.Soft = &soft
			for _, text := range args[1:] {
				a, err := budget.ParseLimit(text)
				if err != nil {
					return err
				}
				if a.Micros > 0 && p.LimitMicros > 0 || a.Tokens > 0 && p.LimitTokens > 0 {
					return thole.Errorf(thole.CodeInvalid, "two limits of one kind").WithHint("give one in dollars and one in tokens")
				}
				p.LimitMicros, p.LimitTokens = p.LimitMicros+a.Micros, p.LimitTokens+a.Tokens
			}
			var b spend.Budget
			if err := env.ask(cmd.Context(), spend.MethodBudgetSet, p, &b); err != nil {
				return err
			}
			return env.print(b, func(w io.Writer) { putf(w, "%s\t%s\n", b.ID, describe(b)) })
		},
	}
	cmd.Flags().StringVar(&p.Period, "period", "", "day, month or total, in UTC (default month; total for thread and turn)")
	cmd.Flags().StringVar(&p.Action, "action", "", "at the limit: warn; block_new (no new turn starts); interrupt (model calls are refused and the turn ends) (default interrupt)")
	cmd.Flags().Int64Var(&soft, "soft", 80, "percentage of the limit at which the thread gets a notice; 0: none")
	return cmd
}

// describe is a budget in one line.
func describe(b spend.Budget) string {
	subject := "each " + b.Scope
	if b.Subject != "" {
		subject = b.Scope + " " + b.Subject
	}
	per := ""
	if b.Period != string(budget.PeriodTotal) {
		per = " a " + b.Period
	}
	return subject + ": " + limitOf(b).Limit() + per + ", then " + b.Action
}

func limitOf(b spend.Budget) budget.Budget {
	return budget.Budget{Micros: b.LimitMicros, Tokens: b.LimitTokens}
}

func newBudgetList(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List budgets and how much of them is used", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []spend.Budget
			if err := env.ask(cmd.Context(), spend.MethodBudgetList, struct{}{}, &all); err != nil {
				return err
			}
			return env.print(all, func(w io.Writer) {
				if len(all) == 0 {
					putln(w, "no budgets: nothing is limited")
					return
				}
				t := newTable(w)
				putf(t, "ID\tSCOPE\tSUBJECT\tLIMIT\tPERIOD\tACTION\tUSED\tLEVEL\n")
				for _, b := range all {
					used, level := "-", "-"
					if len(b.States) > 0 {
						used, level = limitOf(b).Figure(budget.Amount(b.States[0].Spent)), b.States[0].Level
					}
					putf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", b.ID, b.Scope, dash(b.Subject), limitOf(b).Limit(), b.Period, b.Action, used, level)
				}
				_ = t.Flush()
			})
		},
	}
}

func newBudgetShow(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show a budget, who used how much of it, and who changed it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var b spend.Budget
			if err := env.ask(cmd.Context(), spend.MethodBudgetShow, spend.BudgetParams{ID: args[0]}, &b); err != nil {
				return err
			}
			return env.print(b, func(w io.Writer) {
				putln(w, describe(b))
				if !b.ResetsAt.IsZero() {
					putf(w, "starts again at %s\n", b.ResetsAt.UTC().Format(time.RFC3339))
				}
				limit := limitOf(b)
				for _, s := range b.States {
					putf(w, "%s %s: %s used, %s reserved, %s\n", b.Scope, s.Subject, limit.Figure(budget.Amount(s.Spent)), limit.Figure(budget.Amount(s.Reserved)), s.Level)
					if s.Unpriced > 0 {
						putf(w, "  %s without a price: only tokens are counted\n", count(s.Unpriced, "charge"))
					}
				}
				for _, c := range b.Changes {
					putf(w, "%s %s by %s (%s) to %s\n", c.At.UTC().Format(time.RFC3339), c.Action, c.Actor, c.Via, budget.Budget{Micros: c.LimitMicros, Tokens: c.LimitTokens}.Limit())
				}
			})
		},
	}
}

func newBudgetRemove(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Short: "Remove a budget", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := env.ask(cmd.Context(), spend.MethodBudgetRemove, spend.BudgetParams{ID: args[0]}, nil); err != nil {
				return err
			}
			return env.print(struct{}{}, func(w io.Writer) { putln(w, "removed "+args[0]) })
		},
	}
}
