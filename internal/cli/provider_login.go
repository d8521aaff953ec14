package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/vault"
)

func newProviderLogin(env *Env) *cobra.Command {
	var p vault.Params
	cmd := owned(&cobra.Command{
		Use: "login NAME [-- ARGUMENTS]", Short: "Log in with an agent CLI and keep its login in the vault, apart from your own",
		Long: "Runs the CLI's own login in this terminal, with a home directory of its own that is removed afterwards. The login\n" +
			"file that it leaves becomes a secret of the vault; your own login of that CLI is neither read nor changed.\n" +
			"What stands after -- is passed on to the CLI's login.",
		Args: func(cmd *cobra.Command, args []string) error {
			if n := cmd.ArgsLenAtDash(); len(args) == 1 || n == 1 {
				return nil
			}
			return thole.Errorf(thole.CodeInvalid, "name one agent CLI").WithHint("%s", cmd.UseLine())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if p.Provider = args[0]; p.Name == "" {
				p.Name = args[0]
			}
			var d vault.Description
			if err := env.logIn(cmd.Context(), p, args[1:], &d); err != nil {
				return err
			}
			return env.print(d, func(w io.Writer) {
				putf(w, "the login is kept as %s, version %d, fingerprint %s\n", d.Name, d.Version, d.Fingerprint)
			})
		},
	}, &p)
	cmd.Flags().StringVar(&p.Name, "name", "", "name of the secret (default: the agent's)")
	return cmd
}

// logIn runs a CLI's login and seals what it left.
func (e *Env) logIn(ctx context.Context, p vault.Params, args []string, out *vault.Description) (err error) {
	agent, err := e.provider(p.Provider)
	if err != nil {
		return err
	}
	info := agent.Probe(ctx)
	if !info.Available {
		return thole.Errorf(thole.CodeUnavailable, "%s: %s", p.Provider, info.Problem).WithHint("%s", info.Fix)
	}
	var now vault.Listed // a login that cannot be kept is not begun
	if err := e.ask(ctx, vault.MethodList, vault.Params{}, &now); err != nil {
		return err
	}
	if now.Locked != "" {
		return thole.Errorf(thole.CodeUnavailable, "%s", now.Locked).WithHint("%s", now.Hint)
	}
	home, err := e.home()
	if err != nil {
		return err
	}
	room, err := provider.OpenLoginRoom(filepath.Join(home, config.LoginRooms))
	if err != nil {
		return err
	}
	defer func() { err = joinFirst(err, room.Close()) }()
	cmd, err := room.Command(ctx, p.Provider, info.Binary, args, os.Environ())
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.In, e.rawErr, e.rawErr // our own output is the result
	if f, ok := e.rawOut.(*os.File); ok && !e.JSON {
		cmd.Stdout = f // a CLI that asks wants a terminal there
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return thole.Errorf(thole.CodeUnavailable, "the login of %s did not succeed: %w", p.Provider, err).WithHint("see what it printed; or set a key with: thole secret set %s --provider %s", p.Provider, p.Provider)
	}
	if p.Value, err = room.Login(p.Provider); err != nil {
		return err
	}
	defer clear(p.Value)
	return e.ask(ctx, vault.MethodSet, p, out)
}
