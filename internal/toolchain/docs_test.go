package toolchain_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/toolchain"
)

// The page for users prints the allow list and the layouts as they are here.
func TestTheDocsPrintTheTables(t *testing.T) {
	text, err := os.ReadFile("../../docs/toolchain.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, v := range toolchain.Variables {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |", strings.Join(v.Names, "` `"), v.Use))
	}
	rows = append(rows, "")
	for _, l := range toolchain.Layouts {
		var bins, shown []string
		for _, b := range l.Bins {
			bins = append(bins, strings.TrimSuffix("`"+l.Name+"/"+b, "/.")+"`")
		}
		for _, s := range l.Show {
			shown = append(shown, strings.TrimSuffix("`"+l.Name+"/"+s, "/.")+"`")
		}
		root := ""
		if l.Root != "" {
			root = "`" + l.Root + "`"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |", strings.Join(bins, " "), strings.Join(shown, " "), root))
	}
	for part := range strings.SplitSeq(strings.Join(rows, "\n"), "\n\n") {
		if !strings.Contains(string(text), "|---|\n"+part+"\n\n") {
			t.Errorf("docs/toolchain.md has not this table:\n%s", part)
		}
	}
}
