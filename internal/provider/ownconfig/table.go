package ownconfig

// Root is where the files of a table begin.
type Root int

const (
	Dir       Root = iota // the CLI's own directory
	Home                  // the user's home
	HomeOrDir             // the home, or the CLI's directory where a variable moved that
	XDG                   // the CLI's directory below XDG_CONFIG_HOME
)

// Table is what is written down of one CLI's configuration.
type Table struct {
	CLI   string
	Files []File
	// Tail adds to a session's settings what belongs to other files of it.
	Tail func(*reader)
}

// File is a file or a directory of the user.
type File struct {
	Root Root
	From string // below it
	To   string // in the session, as in provider.Grant.Config
	Dir  bool
	// Ends are the endings that count in a directory; none: all.
	Ends []string
	// Keys are those of settings; in a directory, of each file.
	Keys []Key
	// Front are keys of the front matter of Markdown that do not pass.
	Front []Key
	// Fate is Refused for what no session gets; Consent wants the CLI in providers.hooks.
	Fate    Fate
	Consent bool
	Why     string
	// Imports says that the text may name other files of the user.
	Imports bool
}

// Key is a row: keys with one fate.
type Key struct {
	// Names are dotted paths, several with spaces between; * is any one name.
	Names string
	Fate  Fate
	// How is what becomes of a mapped one.
	How How
	Why string
}

// Of is the table of a CLI.
func Of(cli string) (Table, bool) {
	for _, t := range tables {
		if t.CLI == cli {
			return t, true
		}
	}
	return Table{}, false
}

// Names are the CLIs that have one.
func Names() (out []string) {
	for _, t := range tables {
		out = append(out, t.CLI)
	}
	return out
}

var tables = []Table{codexTable, claudeTable, opencodeTable}

const (
	whyConsent = "runs programs of yours: only with this CLI in `providers.hooks`"
	whyProfile = "the thread's profile decides"
	whyScreen  = "for the CLI's own screen, which a session has not"
	whyBox     = "the box decides what an agent sees and reaches"
	whyLogin   = "credentials stay with the gateway"
	whyHost    = "of this machine"
	whyPlugins = "plugins are programs and servers of others"
	whyManaged = "counts only in managed settings"
	whyUnknown = "unknown to thole"
)

func (f File) why() string {
	if f.Why == "" && f.Consent {
		return whyConsent
	}
	return f.Why
}

// pass, refuse and become make rows.
func pass(names string) Key            { return Key{Names: names, Fate: Passed} }
func refuse(why, names string) Key     { return Key{Names: names, Fate: Refused, Why: why} }
func become(how How, names string) Key { return Key{Names: names, Fate: Mapped, How: how} }
