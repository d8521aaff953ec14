package executord_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executord"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// sent is one server-sent event.
type sent struct{ id, name, data string }

// todoStream asks for a run's todo stream.
func todoStream(t *testing.T, dir string, run thole.TurnID, query, last string) (*http.Response, func() (sent, bool)) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://executord/runs/"+string(run)+"/todos/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	req.Header.Set("Accept", "text/event-stream")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	tr := unixTransport(dir)
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close(); tr.CloseIdleConnections() })
	lines := bufio.NewScanner(resp.Body)
	return resp, func() (ev sent, ok bool) {
		for lines.Scan() {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			switch key {
			case "id":
				ev.id = value
			case "event":
				ev.name = value
			case "data":
				ev.data = value
			}
			if lines.Text() == "" && ev.name != "" {
				return ev, true
			}
		}
		return ev, false
	}
}

// The stream sends each change while the run goes on, from any cursor, and says when
// the run is over.
func TestTodoStream(t *testing.T) {
	dir := home(t)
	c, _ := serve(t, dir)
	run := start(t, c, request("sim: todo one | two ;; ask Which? | a | b ;; todo [x] one | [~] two ;; say done"))
	_, next := todoStream(t, dir, run, "", "")
	first, ok := next()
	if !ok || !strings.Contains(first.data, "one") || first.name != string(event.TodoSnapshot) && first.name != string(event.TodoUpdate) {
		t.Fatalf("%+v, %v", first, ok)
	}
	// The run waits for an answer, so this came while it went on.
	var asked wire.PendingAsk
	poll.Until(t, "the question", func() bool {
		asks, err := c.Pending(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(asks) > 0 {
			asked = asks[0]
		}
		return len(asks) > 0
	})
	answer := event.Answer{Answers: map[string][]string{asked.Ask.Questions[0].ID: {"a"}}}
	if _, err := c.Reply(t.Context(), wire.ReplyRequest{Run: run, Ask: asked.Ask.ID, Answer: answer}); err != nil {
		t.Fatal(err)
	}
	rest := []sent{first}
	for {
		ev, ok := next()
		if !ok {
			break
		}
		rest = append(rest, ev)
	}
	end := rest[len(rest)-1]
	if len(rest) < 3 || end.name != "end" || !strings.Contains(rest[len(rest)-2].data, "two") {
		t.Fatalf("the stream said %+v", rest)
	}

	// The history is the same, and where it ends one can go on.
	get := func(query string) (out executord.TodoEvents) {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://executord/runs/"+string(run)+"/todos/events"+query, nil)
		req.Header.Set("Authorization", "Bearer secret")
		tr := unixTransport(dir)
		defer tr.CloseIdleConnections()
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status, err)
		}
		return out
	}
	all := get("")
	if len(all.Events) != len(rest)-1 || strconv.FormatUint(all.Cursor, 10) != end.id {
		t.Fatalf("history %+v, stream %+v", all, rest)
	}
	for i, ev := range all.Events {
		if id := strconv.FormatUint(ev.Cursor, 10); id != rest[i].id || string(ev.Event.Kind) != rest[i].name {
			t.Errorf("event %d: %+v and %+v", i, ev, rest[i])
		}
	}
	if more := get("?after=" + end.id); len(more.Events) != 0 || more.Cursor != all.Cursor {
		t.Errorf("behind the end: %+v", more)
	}
	if tail := get("?after=" + first.id); len(tail.Events) != len(all.Events)-1 {
		t.Errorf("behind the first: %+v", tail)
	}

	// Who lost the stream goes on where it was, whatever the address says.
	_, next = todoStream(t, dir, run, "?after=0", first.id)
	for i := 1; i < len(rest); i++ {
		if ev, ok := next(); !ok || ev != rest[i] {
			t.Errorf("taken up again: %+v, before %+v", ev, rest[i])
		}
	}
	if resp, _ := todoStream(t, dir, run, "", end.id); resp.StatusCode != http.StatusNoContent {
		t.Errorf("nothing will follow: %s", resp.Status)
	}
	if resp, _ := todoStream(t, dir, run, "?after=100000", ""); resp.StatusCode != http.StatusConflict {
		t.Errorf("beyond the end: %s", resp.Status)
	}
	if resp, _ := todoStream(t, dir, run, "?after=x", ""); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("no cursor: %s", resp.Status)
	}
}
