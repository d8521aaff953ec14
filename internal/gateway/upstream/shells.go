package upstream

import (
	"regexp"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/setup"
)

// Shells are the keys that people had in the shells from which they wrote to a thread.
// They are kept in memory alone, for as long as the process lives: a thread whose keys are
// gone goes on with what comes after them.
type Shells struct {
	mu    sync.Mutex // guards what follows
	by    map[thole.ThreadID]map[string]string
	order []thole.ThreadID // the one that was written to last is the last
}

const (
	maxShells    = 4096 // threads
	maxVariables = 32   // of one
)

var variableForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`) })

// Keep takes the keys of the shell from which a thread was written to last. An empty set
// changes nothing: a shell without keys is no wish to use none.
func (s *Shells) Keep(id thole.ThreadID, env map[string]string) error {
	if len(env) == 0 {
		return nil
	}
	if len(env) > maxVariables {
		return thole.Errorf(thole.CodeInvalid, "more than %d variables of a shell", maxVariables)
	}
	kept := make(map[string]string, len(env))
	for name, value := range env {
		if !variableForm().MatchString(name) || len(value) > setup.MaxKey {
			return thole.Errorf(thole.CodeInvalid, "invalid variable of a shell") // the name may be a part of a value
		}
		kept[name] = value
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[thole.ThreadID]map[string]string{}
	}
	s.forgetLocked(id)
	for len(s.order) >= maxShells {
		s.forgetLocked(s.order[0])
	}
	s.by[id], s.order = kept, append(s.order, id)
	return nil
}

func (s *Shells) forgetLocked(id thole.ThreadID) {
	delete(s.by, id)
	for i, one := range s.order {
		if one == id {
			s.order = append(s.order[:i], s.order[i+1:]...)
			return
		}
	}
}

// of are the keys of a thread. Nobody changes the map.
func (s *Shells) of(id thole.ThreadID) map[string]string {
	if s == nil || id == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[id]
}
