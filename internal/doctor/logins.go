package doctor

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/strictjson"
)

// refusedLogin is what the doctor reads of a login that was not taken from an
// executor.
type refusedLogin struct {
	Time   time.Time `json:"time"`
	Reason string    `json:"reason"`
}

func refusedLogins(home string) string { return filepath.Join(home, "logins-refused.json") }

func readRefused(home string) map[string]refusedLogin {
	all := map[string]refusedLogin{}
	if data, err := os.ReadFile(refusedLogins(home)); err == nil {
		_ = strictjson.Unmarshal(data, &all) // a damaged note does not count
	}
	return all
}

// NoteLogins keeps for the doctor which logins that an executor left were refused,
// until one of the same agent is taken.
func NoteLogins(home string, log *slog.Logger) func(string, error) {
	var mu sync.Mutex
	return func(provider string, refused error) {
		mu.Lock()
		defer mu.Unlock()
		all := readRefused(home)
		if _, was := all[provider]; refused == nil && !was {
			return
		}
		delete(all, provider)
		if refused != nil {
			all[provider] = refusedLogin{Time: time.Now().UTC(), Reason: refused.Error()}
		}
		data, err := json.Marshal(all)
		if err == nil {
			err = atomicfile.Write(refusedLogins(home), data, 0o600)
		}
		if err != nil {
			log.Warn("note a refused login", "err", err)
		}
	}
}

func checkLogins(home string) (out []Finding) {
	all := readRefused(home)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := all[name]
		out = append(out, Finding{
			Part: "login " + name, Problem: r.Time.Format(time.RFC3339) + ": " + r.Reason,
			Disables: "the way back of a login that an agent's CLI refreshed",
			Fix:      "look at what the agent did; log in with " + name + " again if it is logged out, then rm " + refusedLogins(home),
		})
	}
	return out
}
