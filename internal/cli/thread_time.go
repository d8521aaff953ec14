package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/protocol/app"
)

// shownTurn is a turn with what it cost, in time, tokens and money.
type shownTurn struct {
	app.Turn
	Time  *view.RunTime `json:"time,omitempty"`
	Usage *view.Usage   `json:"usage,omitempty"`
}

// withSpent joins turns with what they spent. A turn that only one of the lists has began
// between the two calls.
func withSpent(turns []app.Turn, spent []view.Run) []shownTurn {
	out := make([]shownTurn, len(turns))
	for i, t := range turns {
		out[i].Turn = t
		if at := slices.IndexFunc(spent, func(r view.Run) bool { return r.ID == t.ID }); at >= 0 {
			out[i].Time, out[i].Usage = spent[at].Time, &spent[at].Usage
		}
	}
	return out
}

func printSpent(w io.Writer, t shownTurn) {
	parts := []string{plainStatus(t.Status)}
	if s := t.Time; s != nil {
		ms := func(n int64) string { return shortTime(time.Duration(n) * time.Millisecond) }
		parts[0] += " in " + ms(s.Model+s.Tools+s.Human+s.Overhead)
		parts = append(parts, fmt.Sprintf("model %s + tools %s + human %s + overhead %s", ms(s.Model), ms(s.Tools), ms(s.Human), ms(s.Overhead)))
	}
	parts = append(parts, spentText(t.Usage)...)
	putf(w, "turn %s: %s\n", t.ID, strings.Join(parts, ", "))
}

// shortTime is a duration with two or three digits.
func shortTime(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	if d < time.Minute {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	return d.Round(time.Second).String()
}

// dollars is an amount of millionths, with as many digits as it needs to be more than nothing.
func dollars(micros int64) string {
	digits := 2
	if micros < 1_000_000 {
		digits = 4
	}
	return "$" + strconv.FormatFloat(float64(micros)/1e6, 'f', digits, 64)
}
