package cli

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/strictjson"
)

// listChain prints the audit chain, the newest last.
func (e *Env) listChain(ctx context.Context, f audit.Filter) error {
	var out []audit.Link
	if err := e.ask(ctx, audit.MethodLatest, f, &out); err != nil {
		return err
	}
	return e.print(out, func(w io.Writer) {
		t := newTable(w)
		for i := len(out) - 1; i >= 0; i-- {
			l := out[i]
			who := l.Actor
			if who == "" {
				who = "nobody"
			}
			if l.OnBehalf != "" {
				who += " for " + string(l.OnBehalf)
			}
			putf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s %s\t%s\n", l.Seq, l.At.Local().Format("01-02 15:04:05"), l.Outcome, l.Action, who, l.Via+" "+l.Address, l.Kind, l.ID, l.Reason)
		}
		_ = t.Flush()
	})
}

func newAuditVerify(env *Env) *cobra.Command {
	var file, head string
	cmd := &cobra.Command{
		Use: "verify", Short: "Verify the audit chain: that no link was changed, removed or cut off", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			heads, err := readHead(head)
			if err != nil {
				return err
			}
			out, err := env.verifyChain(cmd.Context(), file, heads)
			if err != nil {
				return err
			}
			if err := env.print(out, func(w io.Writer) {
				for _, f := range out.Faults {
					putf(w, "broken: link %d: %s\n", f.Seq, f.What)
				}
				if len(out.Faults) == 0 {
					putf(w, "the chain of %s is whole; signed heads prove it up to link %d\n", count(int(out.Links), "link"), out.Anchored)
				}
			}); err != nil {
				return err
			}
			if len(out.Faults) > 0 {
				return ExitError(exitFailed)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "verify this export instead of the store")
	cmd.Flags().StringVar(&head, "head", "", "also compare with this signed head, which was kept elsewhere")
	return cmd
}

func (e *Env) verifyChain(ctx context.Context, file string, heads []audit.SignedHead) (out audit.Report, err error) {
	if file == "" {
		return out, e.ask(ctx, audit.MethodVerify, audit.VerifyParams{Heads: heads}, &out)
	}
	f, err := os.Open(file)
	if err != nil {
		return out, thole.Errorf(thole.CodeNotFound, "read export: %w", err)
	}
	defer f.Close()
	return audit.VerifyExport(f, heads, "")
}

func readHead(path string) ([]audit.SignedHead, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, thole.Errorf(thole.CodeNotFound, "read signed head: %w", err)
	}
	var h audit.SignedHead
	if err := strictjson.Unmarshal(data, &h); err != nil || h.Signature == "" {
		return nil, thole.Errorf(thole.CodeInvalid, "%s is no signed head", path).WithHint("thole audit export --head-only writes one")
	}
	return []audit.SignedHead{h}, nil
}

func newAuditExport(env *Env) *cobra.Command {
	var file string
	var headOnly bool
	cmd := &cobra.Command{
		Use: "export", Short: "Write the audit chain as lines of JSON, with its signed head at the end", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var last int64
			write := func(w io.Writer) (err error) {
				last, err = env.exportChain(cmd.Context(), w, headOnly)
				return err
			}
			if file == "" {
				return write(env.Out)
			}
			if err := atomicfile.WriteFunc(file, 0o600, write); err != nil {
				return err
			}
			return env.print(map[string]any{"file": file, "seq": last}, func(w io.Writer) { putf(w, "wrote %s, up to link %d\n", file, last) })
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this file instead of the terminal")
	cmd.Flags().BoolVar(&headOnly, "head-only", false, "write the signed head alone, to keep elsewhere")
	return cmd
}

// exportChain reads the head first: links that are added meanwhile are of the next export.
// It returns the last link's number.
func (e *Env) exportChain(ctx context.Context, w io.Writer, headOnly bool) (last int64, err error) {
	var head audit.SignedHead
	if err := e.ask(ctx, audit.MethodHead, struct{}{}, &head); err != nil {
		return 0, err
	}
	lines := json.NewEncoder(w)
	if headOnly {
		return head.Seq, lines.Encode(head)
	}
	for after := int64(0); after < head.Seq; {
		var links []audit.Link
		if err := e.ask(ctx, audit.MethodLinks, audit.LinksParams{After: after, Limit: 500}, &links); err != nil {
			return 0, err
		}
		if len(links) == 0 {
			return 0, thole.Errorf(thole.CodeUnavailable, "the audit chain ends with link %d, and its head says %d", after, head.Seq).WithHint("thole audit verify")
		}
		for _, l := range links {
			if after = l.Seq; l.Seq > head.Seq {
				break
			}
			if err := lines.Encode(l); err != nil {
				return 0, err
			}
		}
	}
	return head.Seq, lines.Encode(audit.Closing{Head: &head})
}
