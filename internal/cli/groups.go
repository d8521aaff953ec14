package cli

import (
	"strings"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
)

// refuseUnknown makes groups of commands refuse a name they do not have. Alone
// they print what they have.
func refuseUnknown(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		refuseUnknown(sub)
	}
	if !cmd.HasSubCommands() || cmd.Runnable() {
		return
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		hint := cmd.CommandPath() + " --help lists the commands"
		if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
			hint = cmd.CommandPath() + " " + strings.Join(like, ", or "+cmd.CommandPath()+" ")
		}
		return thole.Errorf(thole.CodeInvalid, "unknown command %q for %q", args[0], cmd.CommandPath()).WithHint("%s", hint)
	}
}
