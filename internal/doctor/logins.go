package doctor

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
)

// failedLogin is what the doctor reads of a login that could not be renewed.
type failedLogin struct {
	Time   time.Time `json:"time"`
	Reason string    `json:"reason"`
}

func failedLogins(home string) string { return filepath.Join(home, "logins-failed.json") }

func readFailed(home string) map[string]failedLogin {
	all := map[string]failedLogin{}
	if data, err := os.ReadFile(failedLogins(home)); err == nil {
		_ = strictjson.Unmarshal(data, &all) // a damaged note does not count
	}
	return all
}

// NoteLogins keeps for the doctor which logins could not be renewed, until one of the
// same agent is.
func NoteLogins(home string, log *slog.Logger) func(string, error) {
	var mu sync.Mutex
	return func(provider string, failed error) {
		mu.Lock()
		defer mu.Unlock()
		all := readFailed(home)
		if _, was := all[provider]; failed == nil && !was {
			return
		}
		delete(all, provider)
		if failed != nil {
			all[provider] = failedLogin{Time: time.Now().UTC(), Reason: failed.Error()}
		}
		data, err := json.Marshal(all)
		if err == nil {
			err = atomicfile.Write(failedLogins(home), data, 0o600)
		}
		if err != nil {
			log.Warn("note a login that was not renewed", "err", err)
		}
	}
}

// checkLogins says what became of renewals, and what handing logins in costs or not
// doing so disables.
func checkLogins(home string, l provider.Login) (out []Finding) {
	all := readFailed(home)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		r := all[name]
		out = append(out, Finding{
			Part: "login " + name, Problem: r.Time.Format(time.RFC3339) + ": " + r.Reason,
			Disables: "turns of " + name + " once the login it has is over",
			Fix:      "log in with " + name + " again, then rm " + failedLogins(home),
		})
	}
	for _, c := range table.CLIs {
		if slices.Contains(l.HandIn, c.Name) {
			out = append(out, Finding{
				Part: "login " + c.Name, Problem: "it is handed in whole: agents read its refresh tokens and can use the account from anywhere until you log out, and when " + c.Name + " renews it inside, your own is logged out",
				Disables: "the protection of that account", Fix: "take " + c.Name + " out of providers.hand_in_logins",
			})
		}
		if held := l.Withheld(c.Name); len(held) > 0 {
			out = append(out, Finding{
				Part: "login " + c.Name, Problem: "not handed in to agents, because " + c.Name + " wants its refresh token: " + strings.Join(held, ", "),
				Disables: "models of these accounts", Fix: "use an API key, or providers.hand_in_logins = [\"" + c.Name + "\"]: agents can then read the refresh token, and your own login may end when it is renewed inside",
			})
		}
	}
	return out
}
