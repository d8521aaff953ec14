package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tholehq/thole/internal/cli"
)

func commands(string) string {
	var b strings.Builder
	root := cli.Tree()
	b.WriteString("# Commands\n\n" + written("the commands in internal/cli"))
	b.WriteString("`thole help COMMAND` prints the same. Flags of every command, before or after its name:\n\n")
	b.WriteString(flags(root.PersistentFlags()))
	b.WriteString("\nWith `--json` standard output is one JSON array or object, names in snake_case, times in RFC 3339; commands that follow something print one object a line.\n" +
		"Errors and exit codes: [errors.md](errors.md), [exit-codes.md](../operate/exit-codes.md).\n")
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n", strings.TrimSuffix(g.Title, ":"))
		b.WriteString("| command | |\n|---|---|\n")
		for _, cmd := range root.Commands() {
			if cmd.GroupID == g.ID && listed(cmd) {
				fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", cmd.Name(), anchor(cmd), cell(cmd.Short))
			}
		}
		for _, cmd := range root.Commands() {
			if cmd.GroupID == g.ID && listed(cmd) {
				describe(&b, cmd)
			}
		}
	}
	return b.String()
}

func listed(cmd *cobra.Command) bool {
	return !cmd.Hidden && cmd.Deprecated == "" && cmd.Name() != "help"
}

func anchor(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func describe(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n### %s\n\n%s.\n", cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
	if cmd.Runnable() || !cmd.HasSubCommands() {
		fmt.Fprintf(b, "\n    %s\n", cmd.UseLine())
	}
	if cmd.Long != "" {
		fmt.Fprintf(b, "\n%s\n", cmd.Long)
	}
	if list := flags(cmd.LocalNonPersistentFlags()); list != "" {
		b.WriteString("\n" + list)
	}
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n\n")
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			b.WriteString("    " + strings.TrimSpace(line) + "\n")
		}
	}
	for _, sub := range cmd.Commands() {
		if listed(sub) {
			describe(b, sub)
		}
	}
}

func flags(set *pflag.FlagSet) string {
	var b strings.Builder
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		standard := ""
		switch f.DefValue {
		case "", "false", "0", "0s", "[]":
		default:
			standard = " (" + f.DefValue + ")"
		}
		fmt.Fprintf(&b, "- `%s`: %s%s\n", name, usage, standard)
	})
	return b.String()
}
