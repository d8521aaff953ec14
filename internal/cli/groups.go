package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/nearest"
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
				err = excluded(cmd)
			}
			var known *thole.Error
			if err == nil || errors.As(err, &known) {
				return err
			}
			return thole.Errorf(thole.CodeInvalid, "%s", miscounted(cmd, args, err)).WithHint("%s", cmd.UseLine())
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

// miscounted says which argument is missing or too many, by the names in the command's use.
func miscounted(cmd *cobra.Command, args []string, err error) string {
	said := err.Error()
	if !strings.HasPrefix(said, "accepts ") && !strings.HasPrefix(said, "requires ") && !strings.HasPrefix(said, "unknown command ") {
		return said
	}
	names, needed := positionals(cmd)
	if f := cmd.Flags().Lookup("last"); f != nil && f.Changed && len(names) > 0 {
		names, needed = names[1:], max(needed-1, 0) // the thread is known
	}
	switch {
	case len(args) < needed:
		return names[len(args)] + " is missing"
	case len(args) > len(names) && len(names) > 0 && slices.Contains([]string{"MESSAGE", "PROMPT", "TITLE"}, names[len(names)-1]):
		return fmt.Sprintf("%q is one argument too many: a %s of several words stands in quotes", args[len(names)], strings.ToLower(names[len(names)-1]))
	case len(args) > len(names):
		return fmt.Sprintf("%q is one argument too many", args[len(names)])
	}
	return said
}

// positionals are the names of a command's arguments, and how many of them have to be given.
func positionals(cmd *cobra.Command) (names []string, needed int) {
	for _, word := range strings.Fields(cmd.Use)[1:] {
		name, optional := strings.CutPrefix(word, "[")
		if strings.HasPrefix(name, "-") || word == "|" || word == "[flags]" {
			break
		}
		if optional {
			names = append(names, strings.TrimSuffix(name, "]"))
			continue
		}
		names = append(names, strings.TrimSuffix(name, "…"))
		needed = len(names)
	}
	return names, needed
}

// excludes marks a flag with those that it cannot be combined with.
const excludes = "thole_excludes"

// exclude makes a command refuse more than one of these flags.
func exclude(cmd *cobra.Command, names ...string) {
	cmd.MarkFlagsMutuallyExclusive(names...) // completion offers none of the others then
	for _, name := range names {
		f := cmd.Flags().Lookup(name)
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[excludes] = append(f.Annotations[excludes], names...)
	}
}

// excluded names two flags that are set and exclude each other, and what each does.
func excluded(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, name := range f.Annotations[excludes] {
			other := cmd.Flags().Lookup(name)
			if err != nil || other == f || !other.Changed {
				continue
			}
			does := func(f *pflag.Flag) string {
				_, usage := pflag.UnquoteUsage(f)
				return "--" + f.Name + " (" + usage + ")"
			}
			err = thole.Errorf(thole.CodeInvalid, "--%s and --%s exclude each other", f.Name, other.Name).WithHint("choose one: %s, or %s", does(f), does(other))
		}
	})
	return err
}

func unknown(group *cobra.Command, name string) error {
	hint := group.CommandPath() + " --help lists the commands"
	var names []string
	for _, sub := range group.Commands() {
		if sub.IsAvailableCommand() {
			names = append(append(names, sub.Name()), sub.Aliases...)
		}
	}
	if like := nearest.Of(name, names); len(like) > 0 {
		hint = group.CommandPath() + " " + strings.Join(like, ", or "+group.CommandPath()+" ")
	}
	return thole.Errorf(thole.CodeInvalid, "unknown command %q for %q", name, group.CommandPath()).WithHint("%s", hint)
}

// badFlag refuses a flag, with the one that was meant.
func badFlag(cmd *cobra.Command, err error) error {
	bad := (&thole.Error{Code: thole.CodeInvalid, Err: err}).WithHint("%s --help lists the flags", cmd.CommandPath())
	if hint := thole.HintOf(err); hint != "" {
		return bad.WithHint("%s", hint)
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return bad
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Deprecated == "" {
			names = append(names, f.Name)
		}
	})
	if like := nearest.Of(unknown.GetSpecifiedName(), names); len(like) > 0 && unknown.GetSpecifiedShortnames() == "" {
		return bad.WithHint("--%s; %s --help lists the flags", strings.Join(like, ", or --"), cmd.CommandPath())
	}
	return bad
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
