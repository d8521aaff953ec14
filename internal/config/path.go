package config

import (
	"fmt"
	"regexp"
	"sync"

	"github.com/tholehq/thole/internal/toolchain"
)

// Path says where agents look for programs: Inherit stands for the PATH of the process
// that owns the home, System for the directories that every box has, and anything else
// is a directory of this machine. In the file one entry may stand alone, as a string.
type Path []string

// The words of Path.
const (
	Inherit = "inherit"
	System  = "system"
)

// UnmarshalTOML implements toml.Unmarshaler.
func (p *Path) UnmarshalTOML(v any) error {
	*p = nil
	list, many := v.([]any)
	if !many {
		list = []any{v}
	}
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return fmt.Errorf("executor.path must be %q, %q or a list of directories", Inherit, System)
		}
		*p = append(*p, s)
	}
	return nil
}

func checkPathEntry(dir string) error {
	if dir == Inherit || dir == System {
		return nil
	}
	if checkPath(dir) != nil {
		return fmt.Errorf("entry that is neither %q nor %q nor an absolute path: %q", Inherit, System, dir)
	}
	return nil
}

var variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[A-Za-z_][A-Za-z0-9_]*$") })

func checkVariable(name string) error {
	switch {
	case !variableName().MatchString(name):
		return fmt.Errorf("entry that is no name of a variable: %q", name)
	case toolchain.Reserved(name):
		return fmt.Errorf("entry that thole sets itself: %q", name)
	}
	return nil
}
