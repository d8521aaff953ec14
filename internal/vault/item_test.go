package vault

import (
	"testing"
	"time"

	thole "github.com/tholehq/thole"
)

// Every event in every state: what is not in the table is a conflict and changes nothing.
func TestMoves(t *testing.T) {
	now := time.Unix(1, 0)
	legal := map[string]State{
		"item.replace active": Active, "item.replace needs_login": Active,
		"item.needs_login active": NeedsLogin,
		"item.revoke active":      Revoked, "item.revoke needs_login": Revoked,
	}
	for _, event := range []string{eventCreate, eventReplace, eventMark, eventRevoke, eventRewrap, "item.unknown"} {
		for _, from := range []State{Active, NeedsLogin, Revoked, "unknown", ""} {
			was := Item{Name: "n", State: from, ETag: "old"}
			got, err := was.move(event, "new", now)
			to, ok := legal[event+" "+string(from)]
			switch {
			case ok && (err != nil || got.State != to || got.ETag != "new" || !got.Updated.Equal(now)):
				t.Errorf("%s of %q: %+v, %v", event, from, got, err)
			case !ok && (thole.CodeOf(err) != thole.CodeConflict || got != was):
				t.Errorf("%s of %q: %+v, %v", event, from, got, err)
			}
		}
	}
}
