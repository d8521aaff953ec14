package cli

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/platform/spend"
	"github.com/tholehq/thole/internal/platform/usage"
)

func newUsage(env *Env) *cobra.Command {
	var p spend.UsageParams
	var from, to string
	var csv bool
	groups := make([]string, len(usage.Groups))
	for i, g := range usage.Groups {
		groups[i] = string(g)
	}
	cmd := &cobra.Command{
		Use: "usage", Short: "Show the tokens and the cost of turns", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if p.By != "" && !slices.Contains(groups, p.By) {
				return thole.Errorf(thole.CodeInvalid, "--by %q is not a grouping", p.By).WithHint("one of %s", strings.Join(groups, ", "))
			}
			if p.From, err = readTime("--from", from); err != nil {
				return err
			}
			if p.To, err = readTime("--to", to); err != nil {
				return err
			}
			var u spend.Usage
			if err := env.ask(cmd.Context(), spend.MethodUsage, p, &u); err != nil {
				return err
			}
			if csv && !env.JSON {
				if err := spend.WriteCSV(env.Out, p.By, u); err != nil {
					return thole.Errorf(thole.CodeUnavailable, "write output: %w", err)
				}
				return nil
			}
			return env.print(u, func(w io.Writer) { printUsage(w, p.By, u) })
		},
	}
	cmd.Flags().StringVar(&p.By, "by", "", "group by "+strings.Join(groups, ", "))
	cmd.Flags().StringVar(&p.Thread, "thread", "", "only this thread")
	cmd.Flags().StringVar(&from, "from", "", "from this day or time on (UTC), for example 2026-11-01")
	cmd.Flags().StringVar(&to, "to", "", "before this day or time (UTC)")
	cmd.Flags().BoolVar(&csv, "csv", false, "print CSV")
	cmd.AddCommand(newUsagePrices(env))
	return cmd
}

func readTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, thole.Errorf(thole.CodeInvalid, "%s %q is not a day or a time", flag, text).WithHint("for example 2026-11-01 or 2026-11-01T12:00:00Z")
}

func printUsage(w io.Writer, by string, u spend.Usage) {
	t := newTable(w)
	putf(t, "%s\tTURNS\tCALLS\tINPUT\tOUTPUT\tREASONING\tCACHE READ\tCACHE WRITE\tCOST\n", strings.ToUpper(by))
	row := func(key string, s spend.Sum) {
		cost := budget.Money(s.CostMicros)
		if s.Unpriced > 0 {
			cost += "+"
		}
		putf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", key, s.Runs, s.Calls, s.Input, s.Output, s.Reasoning, s.CacheRead, s.CacheWrite, cost)
	}
	for _, g := range u.Groups {
		key := g.Key
		if key == "" {
			key = "(none)"
		}
		row(key, g)
	}
	row("total", u.Total)
	_ = t.Flush()
	if n := u.Total.Unpriced; n > 0 {
		putf(w, "+ turns that used a model without a price: %d; `thole usage prices` shows which have one\n", n)
	}
	if n := u.Total.Unknown; n > 0 {
		putf(w, "calls that ended without a report and count with an upper bound: %d\n", n)
	}
	if n := u.Total.Differs; n > 0 {
		putf(w, "turns that differ by more than 5 %% from what their agent reported: %d\n", n)
	}
}

func newUsagePrices(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "prices", Short: "Show the price table", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var p spend.Prices
			if err := env.ask(cmd.Context(), spend.MethodPrices, struct{}{}, &p); err != nil {
				return err
			}
			return env.print(p, func(w io.Writer) {
				putf(w, "version %s, as of %s (%s), US dollars per million tokens\n", p.Version, p.AsOf, p.Origin)
				t := newTable(w)
				putf(t, "MODEL\tPROVIDER\tFROM\tPROMPT OVER\tIN\tOUT\tCACHE READ\tCACHE WRITE\n")
				for _, r := range p.Items {
					putf(t, "%s\t%s\t%s\t%d\t%g\t%g\t%g\t%g\n", r.Model, dash(r.Provider), dash(r.From), r.PromptOver, r.In, r.Out, r.CacheRead, r.CacheWrite)
				}
				_ = t.Flush()
			})
		},
	}
}
