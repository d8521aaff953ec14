package cli

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/preview"
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

func TestPrintReach(t *testing.T) {
	for want, r := range map[string]view.Reach{
		"network open; models api.example.com:443\n":          {Policy: "open", Ceiling: "open", Models: []string{"api.example.com:443"}},
		"network list: a.com, *.b.com (egress.policy open)\n": {Policy: "list", Ceiling: "open", Allow: []string{"a.com", "*.b.com"}},
	} {
		var b bytes.Buffer
		if printReach(&b, r); b.String() != want {
			t.Errorf("%q, want %q", b.String(), want)
		}
	}
	for want, r := range map[string]reach{"gateway": {name: "gateway"}, "list": {allow: []string{"a.com"}}} {
		if got := r.policy(); got == nil || got.Policy != want {
			t.Errorf("%+v is %+v, want %s", r, got, want)
		}
	}
	if got := (&reach{}).policy(); got != nil {
		t.Errorf("without flags %+v", got)
	}
}

func TestPrintPorts(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.Local)
	one := preview.Port{ID: "x", Thread: "t1", Port: 5173, Origin: "http://x.localhost:7433", OpenedAt: at, ExpiresAt: at.Add(preview.Life)}
	var listed, opened bytes.Buffer
	printPorts(&listed, []preview.Port{one})
	if want := "PORT  ORIGIN                   OPENED               UNTIL\n5173  http://x.localhost:7433  2030-01-02 03:04:05  2030-01-02 15:04:05\n"; listed.String() != want {
		t.Errorf("listed %q, want %q", listed.String(), want)
	}
	one.URL = one.Origin + "/.thole/enter?ticket=y"
	printPorts(&opened, []preview.Port{one})
	for _, want := range []string{one.URL + "\n", "once, within ten minutes", "until 2030-01-02 15:04:05", "thole thread port t1 5173 --close"} {
		if !bytes.Contains(opened.Bytes(), []byte(want)) {
			t.Errorf("%q lacks %q", opened.String(), want)
		}
	}
}
