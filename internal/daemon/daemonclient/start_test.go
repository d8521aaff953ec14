package daemonclient

import (
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
)

func TestNewer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"0.2.0", "0.1.9", true}, {"0.1.10", "0.1.9", true}, {"v1.0.0", "0.9.9", true},
		{"0.1.9", "0.2.0", false}, {"0.2.0", "0.2.0", false},
		// Two development builds cannot be ordered: neither pushes the other out.
		{"0.1.0-dev", "0.1.0", false}, {"0.2.0", "0.1.0-dev", false}, {"", "0.1.0", false},
	} {
		if got := newer(c.a, c.b); got != c.want {
			t.Errorf("newer(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

// What a daemon reports before it answers reaches the command that started it.
func TestReadiness(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		code thole.Code
		hint string
	}{
		"answers":              {`{"ok":true}` + "\n", "", ""},
		"an owner appeared":    {`{"ok":false,"code":"busy","message":"owned"}` + "\n", "", ""},
		"refused":              {`{"ok":false,"code":"forbidden","message":"not yours","hint":"use your own"}` + "\n", thole.CodeForbidden, "use your own"},
		"died without a word":  {"", thole.CodeUnavailable, "see /h/daemon.log"},
		"died in mid-sentence": {`{"ok":tr`, thole.CodeUnavailable, "see /h/daemon.log"},
	} {
		err := report(strings.NewReader(c.line), "/h")
		if thole.CodeOf(err) != c.code || thole.HintOf(err) != c.hint {
			t.Errorf("%s: %v (%s)", name, err, thole.HintOf(err))
		}
	}
}
