package cli

import (
	"io"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/session"
)

func newThreadShare(env *Env) *cobra.Command {
	var expires string
	cmd := &cobra.Command{
		Use: "share THREAD", Short: "Make a link with which anybody can read a thread until it expires",
		Long: "Prints a link to the page of thole up. Who opens it sees what was said and done in this thread, live, and nothing else;\n" +
			"they need no login and can change nothing. The link cannot be shown again. It ends when it expires, when it is revoked\n" +
			"and with the thread. Paths of your home are masked; whatever else the agent wrote or printed is shown as it is.",
		Example: "  thole thread share THREAD --expires 24h\n  thole thread share list\n  thole thread share revoke ID",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := session.ShareParams{Thread: thole.ThreadID(args[0])}
			if !thole.ValidUUID(args[0]) {
				return thole.Errorf(thole.CodeInvalid, "invalid thread id %q", args[0]).WithHint("thole thread list shows them")
			}
			var never bool
			var err error
			if p.Life, never, err = readLife(expires); err != nil {
				return err
			}
			if never {
				return thole.Errorf(thole.CodeInvalid, "a share link expires").WithHint("at most 90d")
			}
			var s session.ShareDescription
			if err := env.ask(cmd.Context(), session.MethodShareCreate, p, &s); err != nil {
				return err
			}
			return env.print(s, func(w io.Writer) {
				if s.URL != "" {
					putln(w, s.URL)
					return
				}
				putln(w, s.Path)
				putln(env.Err, "thole: no page is served: start thole up, and put its address before this path")
			})
		},
	}
	cmd.Flags().StringVar(&expires, "expires", "7d", "days or a duration, for example 7d or 12h, at most 90d")
	cmd.AddCommand(newShareList(env), newShareRevoke(env))
	return cmd
}

func newShareList(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "list [THREAD]", Short: "List share links that work, oldest first", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var p session.ShareParams
			if len(args) == 1 {
				p.Thread = thole.ThreadID(args[0])
			}
			all := []session.ShareDescription{}
			if err := env.ask(cmd.Context(), session.MethodShareList, p, &all); err != nil {
				return err
			}
			return env.print(all, func(w io.Writer) {
				t := newTable(w)
				putf(t, "ID\tTHREAD\tCREATED\tLAST USED\tEXPIRES\n")
				for _, s := range all {
					putf(t, "%s\t%s\t%s\t%s\t%s\n", s.ID, s.SessionID, day(s.CreatedAt), day(s.LastUsedAt), day(s.ExpiresAt))
				}
				_ = t.Flush()
			})
		},
	}
}

func newShareRevoke(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "Revoke a share link; who reads with it is cut off", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := env.ask(cmd.Context(), session.MethodShareRevoke, session.ShareParams{ID: args[0]}, nil); err != nil {
				return err
			}
			return env.print(struct{}{}, func(w io.Writer) { putln(w, "revoked "+args[0]) })
		},
	}
}
