package delivery_test

import (
	"os"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
)

// Every reason that a person can meet is explained.
func TestReasonsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/delivery.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range thole.HoldReasons() {
		if !strings.Contains(string(doc), "`"+string(r)+"`") {
			t.Errorf("docs/delivery.md does not explain %s", r)
		}
	}
}
