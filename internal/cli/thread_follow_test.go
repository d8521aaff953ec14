package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
)

// A reader sees each command and its output once, however the agent emits them:
// written before it begins or while, its output in pieces or whole.
func TestFollowedCommands(t *testing.T) {
	told := func(steps ...string) (out, errs string, err error) {
		var o, e bytes.Buffer
		f := &follower{env: &Env{Out: &o, Err: &e}, thread: "X", told: map[string]bool{}}
		for _, s := range steps {
			method, params, _ := strings.Cut(s, " ")
			if _, err = f.show(t.Context(), appclient.Notification{Method: method, Params: json.RawMessage(params)}, "T"); err != nil {
				break
			}
		}
		return o.String(), e.String(), err
	}
	const command = `{"item":{"type":"commandExecution","id":"c",`
	end := `turn/completed {"turn":{"id":"T","status":"completed"}}`
	for name, steps := range map[string][]string{
		"in pieces": {
			"item/started " + command + `"command":"ls"}}`, `item/commandExecution/outputDelta {"itemId":"c","delta":"a\n"}`,
			`item/commandExecution/outputDelta {"itemId":"c","delta":"b"}`, "item/completed " + command + `"command":"ls","aggregatedOutput":"a\nb"}}`, end,
		},
		"whole, and named late": {
			"item/started " + command + `"command":""}}`, "thole/item/updated " + command + `"command":"ls"}}`,
			"item/completed " + command + `"command":"ls","aggregatedOutput":"a\nb"}}`, end,
		},
		"only as completed": {"item/completed " + command + `"command":"ls","aggregatedOutput":"a\nb"}}`, end},
	} {
		if out, _, err := told(steps...); err != nil || out != "$ ls\n| a\n| b\n" {
			t.Errorf("%s: %v %q", name, err, out)
		}
	}
	if out, _, _ := told(`item/completed {"item":{"type":"agentMessage","id":"m","text":"hello"}}`, end); out != "| hello\n" {
		t.Errorf("a message without pieces: %q", out)
	}
	again := `error {"willRetry":true,"error":{"message":"no network"}}`
	if _, errs, err := told(again, again, end); err != nil || strings.Count(errs, "no network") != 1 {
		t.Errorf("a try again: %v %q", err, errs)
	}
	if _, _, err := told(`thread/deleted {"threadId":"X"}`); thole.CodeOf(err) != thole.CodeGone {
		t.Errorf("a deleted thread: %v", err)
	}
	if _, _, err := told(`thread/deleted {"threadId":"another"}`, end); err != nil {
		t.Errorf("another thread was deleted: %v", err)
	}
}
