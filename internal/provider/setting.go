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
	// The rest is for sessions in which settings of the project do not count: a CLI then
	// passes over instructions of the project too, which are text for the model and count
	// in every profile. It is done for each directory from the top of the thread's files to
	// where its agent works.
	//
	// Tail follows what a file holds, the default or the grant's, with DirPlace for the directory.
	Tail string
	// Texts are names of which the first that is there follows with its text.
	Texts []string
	// Skills are directories of skills that a directory gets: the name and the description
	// of each, and where the agent reads it.
	Skills []string
}

// DirPlace stands in Setting.Tail for a directory.
const DirPlace = "{dir}"

// Configured is a Provider whose CLI has settings. Each name is found with the real
// CLI; test/redteam tries them.
type Configured interface{ Settings() []Setting }

// Options that a thread carries for the one agent that understands them.
const (
	OptionNetwork     = "network"      // whether commands may use the network: true or false
	OptionServiceTier = "service_tier" // the tier of the model's service
	OptionSummary     = "summary"      // how reasoning is summed up
	OptionWebSearch   = "web_search"   // disabled, cached or live
	// OptionPair is the approval policy and sandbox that a client of the contract chose for an
	// agent that has a nearest profile only. No agent reads it.
	OptionPair = "pair"
)
