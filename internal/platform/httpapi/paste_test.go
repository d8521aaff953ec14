package httpapi_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// paste is a text of at least n bytes in which every line differs, so that a lost or
// moved part shows.
func paste(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d: 漢字 \"quoted\" \\ and a tab\there\n", i)
	}
	return b.String() + "sim: say the end was read"
}

// A message of 2 MB is kept whole and reaches the agent up to its last line, by both doors.
func TestALargePasteArrivesWhole(t *testing.T) {
	g := newRig(t)
	text := paste(2 << 20)
	all := g.me.stream("POST", "/api/chat", say("paste", text)).until(doneMark)
	if got := types(all); !strings.Contains(got, "text-delta") || strings.Contains(got, "error") {
		t.Errorf("the chat: %s", got)
	}
	id := g.me.session(nil)
	events := g.me.stream("GET", "/sessions/"+id+"/events?after=0", nil)
	var run obj
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": text}, &run)
	events.until(ofType("run.ended"))
	var items struct {
		Items []struct {
			Kind    string
			Text    string
			Content []struct{ Text string }
		}
	}
	g.me.call(200, "GET", "/runs/"+run["id"].(string)+"/items", nil, &items)
	seen := map[string]string{}
	for _, it := range items.Items {
		for _, c := range it.Content {
			it.Text += c.Text
		}
		seen[it.Kind] = it.Text
	}
	if seen["user_message"] != text || seen["message"] != "the end was read" {
		t.Errorf("kept are %d bytes of %d, the agent said %.100q", len(seen["user_message"]), len(text), seen["message"])
	}
}

// Beyond the limit a message is refused with the limit, by both doors.
func TestAPasteBeyondTheLimitIsRefused(t *testing.T) {
	g := newRig(t)
	text := strings.Repeat("x", 16<<20+1)
	for path, body := range map[string]any{"/sessions/" + g.me.session(nil) + "/runs": obj{"text": text}, "/api/chat": say("paste", text)} {
		res := g.me.do("POST", path, body)
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != 422 || !strings.Contains(string(b), "at most 16777216 are taken") || !strings.Contains(string(b), "put large content into a file") {
			t.Errorf("%s: %s: %.300s", path, res.Status, b)
		}
	}
}
