package provider

// Setting is a name from which a CLI takes what it does without asking: commands to
// run, servers to start, rules of what it may do, programs and texts of others. In a box
// it is read-only and holds what the server decides, also where that is nothing:
// an agent that could make it would decide for the next turn.
type Setting struct {
	// Path is below SessionConfig.Data, or below the agent's home after "~/".
	Path string
	// Dir says that it is a directory.
	Dir bool
	// Content is what a file holds unless a grant says otherwise, Files what a directory
	// holds besides.
	Content string
	Files   map[string]string
}

// Configured is a Provider whose CLI has settings. Each name is found with the real
// CLI; test/redteam tries them.
type Configured interface{ Settings() []Setting }
