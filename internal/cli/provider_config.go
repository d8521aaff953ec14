package cli

import (
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/ownconfig"
	"github.com/tholehq/thole/internal/system"
)

func newProviderConfig(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "config PROVIDER", Short: "Show what sessions get of your own configuration of an agent CLI", Args: cobra.ExactArgs(1),
		Long: "Lists every file and key that you have written for the CLI with what becomes of it, and the files that a session gets.\n" +
			"Values that look like secrets are not shown. The variables are those of this terminal; a running server has its own.",
		RunE: func(_ *cobra.Command, args []string) error {
			if _, ok := ownconfig.Of(args[0]); !ok {
				return thole.Errorf(thole.CodeNotFound, "no configuration of %q", args[0]).WithHint("there are %s", strings.Join(ownconfig.Names(), ", "))
			}
			cfg, err := env.config(nil)
			if err != nil {
				return err
			}
			home, err := os.UserHomeDir()
			if err != nil {
				return thole.Errorf(thole.CodeUnavailable, "find your home directory: %w", err)
			}
			read := system.OwnConfig(cfg, home)
			if read == nil {
				return env.print(shownConfig{Provider: args[0], Off: true}, func(w io.Writer) {
					putln(w, "sessions get nothing of your own configuration: providers.own_config is false")
				})
			}
			got := read(args[0], "")
			shown := shownConfig{Provider: args[0], Keys: got.Lines, Files: got.Show()}
			return env.print(shown, func(w io.Writer) { shown.put(w) })
		},
	}
}

// shownConfig is what the command prints.
type shownConfig struct {
	Provider string           `json:"provider"`
	Off      bool             `json:"off,omitempty"`
	Keys     []ownconfig.Line `json:"keys"`
	Files    []ownconfig.Laid `json:"files"`
}

func (s shownConfig) put(w io.Writer) {
	if len(s.Keys) == 0 {
		putf(w, "you have no configuration of %s\n", s.Provider)
		return
	}
	from := ""
	tw := newTable(w)
	for _, l := range s.Keys {
		if l.From != from {
			putf(tw, "%s\n", oneLine(l.From, 200))
			from = l.From
		}
		key := l.Key
		if key == "" {
			key = "(whole file)"
		}
		putf(tw, "  %s\t%s\t%s\n", l.Fate, oneLine(key, 80), oneLine(l.Why, 160))
	}
	tw.Flush()
	putln(w)
	putln(w, "a session gets")
	for _, f := range s.Files {
		putf(w, "  %s, %d bytes\n", oneLine(f.Path, 200), f.Bytes)
		if f.Text != "" {
			putln(w, quote(f.Text))
		}
	}
}
