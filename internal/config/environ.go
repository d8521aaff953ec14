package config

import (
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/nearest"
)

// others are variables that are not keys: of this program, its installer, and those that
// documents use for the HTTP interface. Names of tests and of users' own scripts are not
// judged unless they look like a key.
var others = []string{"THOLE_HOME", "THOLE_SERVER", "THOLE_READY_FD", "THOLE_URL", "THOLE_TOKEN", "THOLE_EXECUTOR", "THOLE_GATEWAY_TOKEN", "THOLE_RELAY_TOKEN", "THOLE_EXECUTOR_BUBBLEWRAP", "THOLE_INSTALL_DIR", "THOLE_RELEASES",
	"THOLE_EVENT", "THOLE_THREAD", "THOLE_TITLE"} // the last three and THOLE_URL: what notify.command gets

// CheckEnviron refuses a variable that is a misspelt key: it would be ignored, and the
// program would run with another value than the one that was typed.
func CheckEnviron(environ []string) error {
	c := Default()
	known := slices.Clone(others)
	tables := map[string]bool{}
	for _, key := range c.keys() {
		known = append(known, Variable(key))
		table, _, _ := strings.Cut(key, ".")
		tables[Variable(table)+"_"] = true
	}
	short := make([]string, len(known)) // the prefix is no part of the likeness
	for i, name := range known {
		short[i] = strings.TrimPrefix(name, "THOLE_")
	}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "THOLE_") || slices.Contains(known, name) {
			continue
		}
		bad := thole.Errorf(thole.CodeInvalid, "unknown variable %s", name)
		if like := nearest.Of(strings.TrimPrefix(name, "THOLE_"), short); len(like) > 0 {
			return bad.WithHint("did you mean %s? unset %s, or rename it", "THOLE_"+strings.Join(like, " or THOLE_"), name)
		}
		for table := range tables {
			if strings.HasPrefix(name, table) {
				return bad.WithHint("thole config show lists the keys of %s; unset %s, or rename it", strings.ToLower(strings.Trim(strings.TrimPrefix(table, "THOLE"), "_")), name)
			}
		}
	}
	return nil
}
