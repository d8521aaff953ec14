package cli

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/vault"
)

func newSecret(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "secret", Short: "Set, list, try and remove secrets: logins of agents, API keys, tokens of repositories and tools"}
	cmd.AddCommand(newSecretSet(env), newSecretList(env), newSecretShow(env), newSecretRemove(env), newSecretTest(env), newSecretRotate(env))
	return cmd
}

// owned adds the flag that says whose secret is meant.
func owned(cmd *cobra.Command, p *vault.Params) *cobra.Command {
	cmd.Flags().StringVar((*string)(&p.Owner), "owner", string(vault.OfUser), "whose it is: user (your own), or shared by a project, an app or the platform")
	return cmd
}

func newSecretSet(env *Env) *cobra.Command {
	var p vault.Params
	var file, expires string
	cmd := owned(&cobra.Command{
		Use: "set NAME [-]", Short: "Set a secret, or replace its value; the value is asked for, or read from a file or standard input",
		Long: "Set a secret, or replace the value of the one with that name. The value is never an argument: it is asked for\n" +
			"without showing it, read from --file, or from standard input with -. A value of one line loses its line end;\n" +
			"a longer one is kept as it is. It cannot be shown again.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			p.Name = args[0]
			if expires != "" {
				if p.Life, _, err = readLife(expires); err != nil {
					return err
				}
			}
			if p.Value, err = env.readSecret(args, file); err != nil {
				return err
			}
			defer clear(p.Value)
			var d vault.Description
			if err := env.ask(cmd.Context(), vault.MethodSet, p, &d); err != nil {
				return err
			}
			return env.print(d, func(w io.Writer) {
				putf(w, "set %s (%s), version %d, fingerprint %s\n", d.Name, d.Kind, d.Version, d.Fingerprint)
			})
		},
	}, &p)
	f := cmd.Flags()
	f.StringVar((*string)(&p.Kind), "kind", "", "provider_auth, git, mcp or env (default: provider_auth with --provider, else env)")
	f.StringVar(&p.Provider, "provider", "", "the agent or service that it logs in to: see thole provider list, or for example openai, anthropic")
	f.StringVar(&file, "file", "", "read the value from this file, for example the whole login file of an agent")
	f.StringVar(&expires, "expires", "", "days or a duration after which it is not used any more, for example 90d")
	return cmd
}

func newSecretList(env *Env) *cobra.Command {
	var p vault.Params
	cmd := &cobra.Command{
		Use: "list", Short: "List secrets, oldest first, without their values", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all vault.Listed
			if err := env.ask(cmd.Context(), vault.MethodList, p, &all); err != nil {
				return err
			}
			return env.print(all, func(w io.Writer) {
				t := newTable(w)
				putf(t, "NAME\tKIND\tPROVIDER\tOWNER\tSTATE\tFINGERPRINT\tCHANGED\tLAST USED\tEXPIRES\n")
				for _, i := range all.Items {
					putf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.Name, i.Kind, dash(i.Provider), i.Owner, i.State, dash(i.Fingerprint), day(i.UpdatedAt), day(i.LastUsedAt), day(i.ExpiresAt))
				}
				_ = t.Flush()
				if all.Locked != "" {
					putf(w, "%s\n", all.Locked)
					putf(w, "  try: %s\n", all.Hint)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&p.All, "all", false, "also those that were removed")
	return cmd
}

func newSecretShow(env *Env) *cobra.Command {
	var p vault.Params
	return owned(&cobra.Command{
		Use: "show NAME", Short: "Show a secret's fingerprint, changes and uses, never its value", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Name = args[0]
			var s vault.Shown
			if err := env.ask(cmd.Context(), vault.MethodShow, p, &s); err != nil {
				return err
			}
			return env.print(s, func(w io.Writer) { printSecret(w, s) })
		},
	}, &p)
}

func printSecret(w io.Writer, s vault.Shown) {
	t := newTable(w)
	for _, row := range [][2]string{
		{"name", s.Name}, {"kind", string(s.Kind)}, {"provider", dash(s.Provider)}, {"owner", string(s.Owner)}, {"state", string(s.State)},
		{"fingerprint", s.Fingerprint}, {"last used", day(s.LastUsedAt)}, {"expires", day(s.ExpiresAt)},
	} {
		putf(t, "%s\t%s\n", row[0], row[1])
	}
	for _, c := range s.Changes {
		putf(t, "changed\t%s  %s by %s via %s, version %d\n", day(c.At), c.Event, c.Actor, c.Via, c.Version)
	}
	for _, u := range s.Uses {
		putf(t, "used\t%s  %s, turn %s of thread %s\n", day(u.At), u.Purpose, dash(u.Turn), dash(u.Thread))
	}
	_ = t.Flush()
}

func newSecretRemove(env *Env) *cobra.Command {
	var p vault.Params
	return owned(&cobra.Command{
		Use: "rm NAME", Aliases: []string{"revoke"}, Short: "Erase a secret; it is not used from now on, and the record of its uses stays", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Name = args[0]
			var d vault.Description
			if err := env.ask(cmd.Context(), vault.MethodRevoke, p, &d); err != nil {
				return err
			}
			return env.print(d, func(w io.Writer) { putln(w, "removed "+d.Name) })
		},
	}, &p)
}

func newSecretTest(env *Env) *cobra.Command {
	var p vault.Params
	return owned(&cobra.Command{
		Use: "test NAME", Short: "Open a secret and say what it is, without showing it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Name = args[0]
			var out vault.Tested
			if err := env.ask(cmd.Context(), vault.MethodTest, p, &out); err != nil {
				return err
			}
			return env.print(out, func(w io.Writer) { putln(w, out.Found) })
		},
	}, &p)
}

func newSecretRotate(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "rotate-key", Short: "Change the key that protects all secrets, while they are used as before", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var r vault.Rotation
			if err := env.ask(cmd.Context(), vault.MethodRotate, vault.Params{}, &r); err != nil {
				return err
			}
			return env.print(r, func(w io.Writer) {
				putf(w, "the key is now %s; %d data keys were wrapped again\n", r.KEK, r.Keys)
				putf(w, "the old key is kept in %s: backups from before need it; remove it when there are none\n", r.Kept)
			})
		},
	}
}
