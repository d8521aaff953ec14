package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/nearest"
	"github.com/tholehq/thole/internal/platform/session"
)

func newToken(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Create, list and revoke API tokens for scripts that use the HTTP interface"}
	cmd.AddCommand(newTokenCreate(env), newTokenList(env), newTokenRevoke(env))
	return cmd
}

func newTokenCreate(env *Env) *cobra.Command {
	var p session.TokenParams
	var expires string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a token and print it; it cannot be shown again", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			p.Name = args[0]
			if p.Life, p.Never, err = readLife(expires); err != nil {
				return err
			}
			method := session.MethodTokenCreate
			if p.User != "" {
				method = session.MethodServiceToken
			}
			var t session.Description
			if err := env.ask(cmd.Context(), method, p, &t); err != nil {
				return err
			}
			return env.printValue(t, t.Secret)
		},
	}
	ofService(cmd, &p.User)
	cmd.Flags().StringVar((*string)(&p.Scope), "scope", string(session.ScopeAct), "what it may do: jobs (only report jobs); read; act (also send, answer, edit); admin (also manage logins and tokens)")
	cmd.Flags().StringVar(&expires, "expires", "90d", "days or a duration, for example 7d or 12h, or never")
	cmd.Flags().StringVar(&expires, "expires-in", "90d", "same as --expires")
	_ = cmd.Flags().MarkDeprecated("expires-in", "use --expires")
	return cmd
}

// ofService adds the flag that names the user whose tokens are meant.
func ofService(cmd *cobra.Command, user *string) {
	cmd.Flags().StringVar(user, "user", "", "login of a service whose tokens are meant (default: your own)")
}

// readLife reads days, a duration in whole seconds, or never.
func readLife(text string) (seconds int64, never bool, err error) {
	if text == "never" {
		return 0, true, nil
	}
	var life time.Duration
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint16
		_, err = fmt.Sscanf(days+"\n", "%d\n", &n)
		life = time.Duration(n) * 24 * time.Hour
	} else {
		life, err = time.ParseDuration(text)
	}
	if err != nil || life <= 0 || life%time.Second != 0 {
		return 0, false, thole.Errorf(thole.CodeInvalid, "--expires %q is not a time from now", text).WithHint("for example 90d, 12h or never")
	}
	return int64(life / time.Second), false, nil
}

func newTokenList(env *Env) *cobra.Command {
	var of string
	cmd := &cobra.Command{
		Use: "list", Short: "List tokens, oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []session.Description
			if err := env.ask(cmd.Context(), session.MethodTokenList, session.TokenParams{User: of}, &all); err != nil {
				return err
			}
			return env.print(all, func(w io.Writer) {
				t := newTable(w)
				putf(t, "ID\tNAME\tSCOPE\tCREATED\tLAST USED\tEXPIRES\n")
				warn := 0
				for _, one := range all {
					putf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", one.ID, one.Name, one.Scope, day(one.CreatedAt), day(one.LastUsedAt), day(one.ExpiresAt))
					if one.Warning != "" {
						warn++
					}
				}
				_ = t.Flush()
				if warn > 0 {
					putf(w, "warning: %d never expire: make others with `thole token create` and revoke these\n", warn)
				}
			})
		},
	}
	ofService(cmd, &of)
	return cmd
}

func day(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.Local().Format(time.DateTime)
}

func newTokenRevoke(env *Env) *cobra.Command {
	var of string
	cmd := &cobra.Command{
		Use: "revoke NAME|ID", Short: "Revoke a token and what was made with it; its clients are refused from now on", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []session.Description
			if err := env.ask(cmd.Context(), session.MethodTokenList, session.TokenParams{User: of}, &all); err != nil {
				return err
			}
			one, err := tokenCalled(args[0], all)
			if err != nil {
				return err
			}
			if err := env.ask(cmd.Context(), session.MethodTokenRevoke, session.TokenParams{User: of, ID: one.ID}, nil); err != nil {
				return err
			}
			return env.print(one, func(w io.Writer) { putf(w, "revoked %s, %s\n", one.Name, one.ID) })
		},
	}
	ofService(cmd, &of)
	return cmd
}

// tokenCalled finds a token by its id, or by a name that only one has.
func tokenCalled(what string, all []session.Description) (session.Description, error) {
	var called []session.Description
	var names, ids []string
	for _, t := range all {
		if t.ID == what {
			return t, nil
		}
		names = append(names, t.Name)
		if t.Name == what {
			called, ids = append(called, t), append(ids, t.ID)
		}
	}
	none := thole.Errorf(thole.CodeNotFound, "no token %s", what)
	like := nearest.Of(what, names)
	switch {
	case len(called) == 1:
		return called[0], nil
	case len(called) > 1:
		return session.Description{}, thole.Errorf(thole.CodeConflict, "%d tokens are called %s", len(called), what).WithHint("revoke one by its id: %s", strings.Join(ids, ", "))
	case len(like) > 0:
		return session.Description{}, none.WithHint("did you mean %s? thole token list shows them", strings.Join(like, " or "))
	}
	return session.Description{}, none.WithHint("thole token list shows them")
}
