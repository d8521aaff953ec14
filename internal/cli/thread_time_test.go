package cli

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/protocol/app"
)

func TestPrintSpent(t *testing.T) {
	cost := int64(12_300)
	turns := withSpent([]app.Turn{{ID: "a", Status: app.TurnCompleted}, {ID: "b", Status: app.TurnInProgress}, {ID: "c", Status: app.TurnFailed}}, []view.Run{
		{ID: "b"},
		{ID: "a", Time: &view.RunTime{Model: 61_000, Tools: 2_040, Human: 0, Overhead: 960}, Usage: view.Usage{Input: 100, CacheRead: 900, Output: 50, CostMicros: &cost}},
	})
	var b strings.Builder
	for _, turn := range turns {
		printSpent(&b, turn)
	}
	want := "turn a: completed in 1m4s, model 1m1s + tools 2.0s + human 0s + overhead 960ms, 1000 tokens in, 50 out, $0.0123\n" +
		"turn b: running\nturn c: failed\n"
	if b.String() != want {
		t.Fatalf("got\n%swant\n%s", b.String(), want)
	}
}
