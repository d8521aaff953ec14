package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
)

// refuseUnknown makes groups of commands refuse a name they do not have, and
// commands the wrong number of arguments, missing flags and flags that exclude one
// another, with how they are used. Alone groups print what they have.
func refuseUnknown(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		refuseUnknown(sub)
	}
	if !cmd.HasSubCommands() || cmd.Runnable() {
		wants := cmd.Args
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			var err error
			if wants != nil {
				err = wants(cmd, args)
			}
			if err == nil {
				err = cmd.ValidateRequiredFlags()
			}
			if err == nil {
				err = cmd.ValidateFlagGroups()
			}
			var known *thole.Error
			if err == nil || errors.As(err, &known) {
				return err
			}
			return (&thole.Error{Code: thole.CodeInvalid, Err: err}).WithHint("%s", cmd.UseLine())
		}
		return
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknown(cmd, args[0])
	}
}

func unknown(group *cobra.Command, name string) error {
	hint := group.CommandPath() + " --help lists the commands"
	if like := group.SuggestionsFor(name); len(like) > 0 {
		hint = group.CommandPath() + " " + strings.Join(like, ", or "+group.CommandPath()+" ")
	}
	return thole.Errorf(thole.CodeInvalid, "unknown command %q for %q", name, group.CommandPath()).WithHint("%s", hint)
}

// newHelp explains a command, and rejects unknown command names.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show help for a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err == nil && len(rest) > 0 {
				err = unknown(cmd, rest[0])
			}
			if err != nil {
				return err
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}
