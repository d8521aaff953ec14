package plain_test

import (
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/plain"
)

//go:embed table.json
var table []byte // web/src/ui/plain.test.ts reads it too

func TestWhatIsHiddenIsShown(t *testing.T) {
	var rows []struct{ In, Line, Text string }
	if err := json.Unmarshal(table, &rows); err != nil || len(rows) < 10 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	for _, r := range rows {
		if r.Text == "" {
			r.Text = r.Line
		}
		if got := plain.Line(r.In); got != r.Line {
			t.Errorf("Line(%q) = %q, want %q", r.In, got, r.Line)
		}
		if got := plain.Text(r.In); got != r.Text {
			t.Errorf("Text(%q) = %q, want %q", r.In, got, r.Text)
		}
		var whole, pieces strings.Builder
		_, _ = (&plain.Writer{W: &whole}).Write([]byte(r.In))
		w := &plain.Writer{W: &pieces}
		for i := range []byte(r.In) {
			if n, err := w.Write([]byte(r.In)[i : i+1]); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		_ = w.Flush()
		if whole.String() != r.Text || pieces.String() != r.Text {
			t.Errorf("%q was written as %q, byte for byte as %q", r.In, whole.String(), pieces.String())
		}
	}
}

// What is no UTF-8 is no character that anybody meant: a terminal may take a lone
// byte for a command.
func TestInvalidBytes(t *testing.T) {
	for in, want := range map[string]string{"\x9b31m": `\ufffd31m`, "a\xff": `a\ufffd`, "\xe2\x80": `\ufffd\ufffd`} {
		var b strings.Builder
		w := &plain.Writer{W: &b}
		_, _ = w.Write([]byte(in))
		_ = w.Flush()
		if b.String() != want || plain.Line(in) != want {
			t.Errorf("%q became %q and %q, want %q", in, b.String(), plain.Line(in), want)
		}
	}
}

// A line of JSON stays that line, with the same values.
func TestJSONStaysJSON(t *testing.T) {
	in := map[string]string{"k\u202e": "\u009b\x7f\u200b\U000e0041\xff\n"}
	line, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	shown := plain.Text(string(line))
	var out map[string]string
	if err := json.Unmarshal([]byte(shown), &out); err != nil || out["k\u202e"] != "\u009b\x7f\u200b\U000e0041\ufffd\n" || plain.Line(shown) != shown {
		t.Errorf("%s: %q %v", shown, out, err)
	}
}
