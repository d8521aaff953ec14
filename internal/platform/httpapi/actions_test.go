package httpapi_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/platform/httpapi"
)

// TestEveryRouteNamesItsAction, one that there is, and the file names no route that there is not.
func TestEveryRouteNamesItsAction(t *testing.T) {
	g := newRig(t, func(c *httpapi.Config) { c.Metrics = http.NotFoundHandler() })
	routes := map[string]bool{}
	for _, r := range g.HTTP.Routes() {
		routes[r.Method+" "+r.Path] = true
		switch open := r.Public != "" || r.Shared; {
		case open && r.Action != "":
			t.Errorf("%s %s is open to anybody and has the action %s", r.Method, r.Path, r.Action)
		case !open && !slices.Contains(authz.Actions(), r.Action):
			t.Errorf("%s %s has the action %q", r.Method, r.Path, r.Action)
		case !open && r.Method != "GET" && slices.Contains([]authz.Action{authz.ViewThread, authz.ViewApp, authz.BrowseFiles}, r.Action):
			t.Errorf("%s %s acts, and is named %s", r.Method, r.Path, r.Action)
		}
	}
	text, err := os.ReadFile("actions.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.SplitSeq(string(text), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		if len(f) != 3 || !routes[f[1]+" "+f[2]] || seen[f[1]+" "+f[2]] {
			t.Errorf("%q is no route, or is there twice", line)
		}
		seen[strings.Join(f[1:], " ")] = true
	}
}
