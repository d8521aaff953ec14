package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/toolchain"
)

func newExecutorPaths(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "paths", Short: "Show which programs and variables of your shell agents have, and why others not", Args: cobra.NoArgs,
		Long: "Prints the PATH and the variables of the process that owns the home, as it was started, and what became of them:\n" +
			"what is shown read-only in the boxes of agents, and what is left out and why. Values of variables are not printed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			var p toolchain.Plan
			if err := env.ask(cmd.Context(), executors.MethodPaths, struct{}{}, &p); err != nil {
				return err
			}
			return env.print(p, func(w io.Writer) { printShell(w, p) })
		},
	}
}

func printShell(w io.Writer, p toolchain.Plan) {
	t := newTable(w)
	putf(t, "ON PATH\tIN THE BOX\n")
	for _, e := range p.Entries {
		switch {
		case e.LeftOut != "":
			putf(t, "%s\tleft out: %s\n", e.Dir, e.LeftOut)
		case len(e.Shown) == 0:
			putf(t, "%s\tof the system\n", e.Dir)
		default:
			putf(t, "%s\tshown: %s\n", e.Dir, strings.Join(e.Shown, " "))
		}
	}
	putf(t, "\nVARIABLE\tIN THE BOX\n")
	for _, v := range p.Variables {
		use := string(v.Use)
		switch v.Use {
		case toolchain.Passes, toolchain.Locale, toolchain.Address, toolchain.Place, toolchain.Root, toolchain.Typed:
			use = "set"
		}
		if v.LeftOut != "" {
			use = "left out: " + v.LeftOut
		}
		if v.Secret {
			use += ", looks like a secret"
		}
		putf(t, "%s\t%s\n", v.Name, use)
	}
	_ = t.Flush()
	if p.Author != "" {
		putln(w)
		putln(w, "commits are made as", p.Author)
	}
}
