package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

// groups are how the help lists commands. One that is in none is plumbing.
var groups = []struct {
	id, title string
	commands  []string
}{
	{"daily", "Every day:", []string{"run", "ask", "ps", "inbox", "thread", "tui", "up", "usage", "budget", "provider", "secret", "doctor"}},
	{"jobs", "Background jobs and their results:", []string{"job", "batch", "artifact", "audit", "codex", "desktop"}},
	{"server", "The server:", []string{"serve", "service", "daemon", "login", "logout", "token", "user", "department", "role", "grant", "config", "executor", "workspace", "sweep", "check", "backup", "restore", "db", "version"}},
	{"plumbing", "Protocols and tools for programs:", nil},
}

// arrange puts commands into groups. Their order is by name, as everywhere.
func arrange(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
	}
	for _, cmd := range root.Commands() {
		cmd.GroupID = "plumbing"
		for _, g := range groups {
			if slices.Contains(g.commands, cmd.Name()) {
				cmd.GroupID = g.id
			}
		}
	}
	root.SetHelpCommandGroupID("plumbing")
	root.SetCompletionCommandGroupID("plumbing")
}

// explain gives commands their examples.
func explain(cmd *cobra.Command) {
	if cmd.Example == "" {
		cmd.Example = examples[cmd.CommandPath()]
	}
	for _, sub := range cmd.Commands() {
		explain(sub)
	}
}
