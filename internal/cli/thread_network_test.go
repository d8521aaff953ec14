package cli

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/view"
)

func TestPrintNetwork(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.Local)
	var b bytes.Buffer
	printNetwork(&b, []view.RunNetwork{
		{RunID: "t1", Traffic: []event.Traffic{{Host: "a.com", Port: 443, Verdict: "allowed", Connections: 2, Sent: 3, Received: 4, First: at, Last: at}, {Verdict: "refused", Connections: 9, First: at, Last: at}}},
		{RunID: "t2", Live: true, Traffic: []event.Traffic{{Host: "2001:db8::1", Port: 22, Verdict: "refused", Why: "it is\na reserved address", First: at, Last: at}}},
		{Live: true, Traffic: []event.Traffic{{Host: "\"x y\"", Verdict: "refused", First: at, Last: at}}},
	})
	got := regexp.MustCompile(`(?m)  +`).ReplaceAllString(b.String(), "  ")
	want := `TURN  TARGET  VERDICT  CONNECTIONS  SENT  RECEIVED  FIRST  LAST  WHY
t1  a.com:443  allowed  2  3  4  2030-01-02 03:04:05  03:04:05  
t1  (others)  refused  9  0  0  2030-01-02 03:04:05  03:04:05  
t2 (running)  [2001:db8::1]:22  refused  0  0  0  2030-01-02 03:04:05  03:04:05  it is a reserved address
between turns  "x y"  refused  0  0  0  2030-01-02 03:04:05  03:04:05  
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
