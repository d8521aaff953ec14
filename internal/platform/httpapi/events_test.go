package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/thread"
)

func seq(e sseEvent) int {
	n, _ := e.data["seq"].(float64)
	return int(n)
}

// finished runs a turn to its end and returns the session's id and last seq.
func finished(g *rig, text string) (string, int) {
	id := g.me.session(obj{"execution_profile": "full"})
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": text}, nil)
	all := s.until(func(e sseEvent) bool {
		return e.data["type"] == "run.status" && e.data["data"].(obj)["phase"] == "succeeded" || e.data["type"] == "run.ended"
	})
	return id, seq(all[len(all)-1])
}

func TestResumeAtEveryCut(t *testing.T) {
	g := newRig(t)
	id, last := finished(g, "sim: think a b ;; say one two three ;; run echo x ;; todo a | b")
	whole := g.me.stream("GET", "/sessions/"+id+"/events?after=0", nil).until(func(e sseEvent) bool { return seq(e) == last })
	for cut := range last {
		for _, path := range []string{"/sessions/" + id + "/events", "/events?sessions=" + id} {
			want := cut
			s := g.me.with("Last-Event-ID", fmt.Sprint(cut)).stream("GET", path, nil)
			for _, e := range s.until(func(e sseEvent) bool { return seq(e) == last }) {
				if seq(e) == 0 {
					continue
				}
				if want++; seq(e) != want || e.id != fmt.Sprint(want) {
					t.Fatalf("%s after %d: event %d with id %q, want %d", path, cut, seq(e), e.id, want)
				}
			}
			_ = s.res.Body.Close()
			if want != last {
				t.Fatalf("%s after %d ended at %d of %d", path, cut, want, last)
			}
		}
	}
	if whole[0].name != "ready" || whole[0].data["resumed"] != true {
		t.Errorf("first event = %+v", whole[0])
	}
	g.me.call(400, "GET", "/sessions/"+id+"/events?after=x", nil, nil)
	g.me.call(400, "GET", "/events?after=1.2&sessions="+id, nil, nil)
}

// HEAD of a stream is its headers: nothing follows them, not even later.
func TestHeadOfAStream(t *testing.T) {
	g := newRig(t)
	id := g.me.session(obj{"execution_profile": "full"})
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: hang"}, nil)
	for _, path := range []string{"/events", "/sessions/" + id + "/events", "/api/chat/" + id + "/stream"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(g.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
		r := g.me.with("Connection", "close").request("HEAD", path, nil)
		if err := r.Write(conn); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		_ = conn.Close()
		head, rest, _ := strings.Cut(string(got), "\r\n\r\n")
		if err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") || !strings.Contains(head, "text/event-stream") || rest != "" {
			t.Errorf("%s: %v: %q", path, err, got)
		}
	}
}

func TestTextInFlight(t *testing.T) {
	g := newRig(t)
	id := g.me.session(obj{"execution_profile": "full"})
	first := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	text := strings.Repeat("0123456789", 20)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: slow 10ms 4 ;; say " + text}, nil)
	seen := first.until(ofType("item.delta"))
	cut := 0
	for _, e := range seen {
		cut = max(cut, seq(e))
	}
	// A second reader that resumes gets the text so far at its place.
	s := g.me.stream("GET", fmt.Sprintf("/sessions/%s/events?after=%d", id, cut), nil)
	var got []byte
	for _, e := range s.until(ofType("item.completed")) {
		if e.data["type"] != "item.delta" {
			continue
		}
		d := e.data["data"].(obj)
		at, delta := int(d["offset"].(float64)), d["delta"].(string)
		if at > len(got) {
			t.Fatalf("a gap: %d after %d", at, len(got))
		}
		got = append(got[:at], delta...)
	}
	if string(got) != text {
		t.Fatalf("got %q", got)
	}
}

func TestMultiplexed(t *testing.T) {
	g := newRig(t)
	a, b := g.me.session(obj{"execution_profile": "full"}), g.me.session(obj{"execution_profile": "full"})
	s := g.me.stream("GET", "/events?sessions="+a+","+b, nil)
	if e, _ := s.next(); e.name != "ready" || e.data["sessions"].(obj)[a] != 1.0 {
		t.Fatalf("first = %+v", e)
	}
	g.me.call(201, "POST", "/sessions/"+b+"/runs", obj{"text": "sim: say b"}, nil)
	all := s.until(ofType("run.ended"))
	end := all[len(all)-1]
	if end.data["session_id"] != b || end.id != fmt.Sprintf("1.%d", seq(end)) {
		t.Fatalf("end = %+v", end)
	}
	c := g.me.session(obj{"name": "third"})
	all = s.until(ofType("session.created"))
	if e := all[len(all)-1]; e.data["session_id"] != c || e.id != "" {
		t.Fatalf("news = %+v", e)
	}
	g.me.call(204, "DELETE", "/sessions/"+a, nil, nil)
	s.until(func(e sseEvent) bool { return e.data["type"] == "session.deleted" && e.data["session_id"] == a })
	g.you.session(obj{"name": "not yours"})
	g.me.call(201, "POST", "/sessions/"+b+"/runs", obj{"text": "sim: say again"}, nil)
	for _, e := range s.until(ofType("run.ended")) {
		if e.data["type"] == "session.created" {
			t.Fatalf("a stranger's session: %+v", e)
		}
	}
}

func TestCursorTooOld(t *testing.T) {
	g := newRig(t)
	id, last := finished(g, "sim: say one")
	floor, err := g.threads.Compact(ctx, thole.LocalActor, thole.ThreadID(id), uint64(last))
	if err != nil || floor == 0 {
		t.Fatal(floor, err)
	}
	s := g.me.with("Last-Event-ID", "1").stream("GET", "/sessions/"+id+"/events", nil)
	all := s.until(func(e sseEvent) bool { return e.name == "cursor_too_old" })
	if d := all[len(all)-1].data; d["floor"] != float64(floor) || d["session_id"] != id {
		t.Fatalf("event = %v", d)
	}
	var v obj
	g.me.call(200, "GET", "/sessions/"+id+"/messages", nil, &v) // rebuilt from the items
	if len(items(v)) != 2 || !strings.Contains(fmt.Sprint(items(v)[1]), "one") {
		t.Fatalf("messages = %v", v)
	}
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: say two"}, nil)
	s.until(ofType("run.ended"))
}

func TestDeletedAndShutdown(t *testing.T) {
	g := newRig(t)
	id, _ := finished(g, "sim: say one")
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	s.until(func(e sseEvent) bool { return e.name == "ready" })
	g.me.call(204, "DELETE", "/sessions/"+id, nil, nil)
	all := s.until(func(e sseEvent) bool { return e.name == "end" })
	if all[len(all)-1].data["reason"] != "deleted" {
		t.Fatalf("end = %+v", all)
	}
	u := g.me.stream("GET", "/events", nil)
	u.until(func(e sseEvent) bool { return e.name == "ready" })
	chat := g.me.stream("POST", "/api/chat", say("x", "sim: hang"))
	chat.until(ofType("start"))
	go func() { _ = g.HTTP.Shutdown(ctx) }()
	all = u.until(func(e sseEvent) bool { return e.name == "end" })
	if all[len(all)-1].data["reason"] != "shutdown" {
		t.Fatalf("end = %+v", all)
	}
	for {
		if _, ok := chat.next(); !ok {
			break
		}
	}
	if chat.scan.Err() == nil {
		t.Error("the chat ended as if it were complete")
	}
}

func TestCoalescing(t *testing.T) {
	g := newRig(t)
	id := g.me.session(obj{"execution_profile": "full"})
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	began := time.Now()
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: slow 1ms 1 ;; say " + strings.Repeat("x", 300)}, nil)
	n, text := 0, ""
	for _, e := range s.until(ofType("run.ended")) {
		if e.data["type"] == "item.delta" {
			n++
			text += e.data["data"].(obj)["delta"].(string)
		}
	}
	most := int(time.Since(began)/(50*time.Millisecond)) + 10
	if len(text) != 300 || n > most {
		t.Errorf("%d bytes in %d deltas, want at most %d", len(text), n, most)
	}
}

// Streams end soon after their reader may not read any more.
func TestStreamsEndWithTheLogin(t *testing.T) {
	g := newRig(t, func(c *httpapi.Config) { c.KeepAlive = 20 * time.Millisecond })
	id := g.me.session(obj{"execution_profile": "full"})
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: hang"}, nil)
	var made obj
	g.me.call(201, "POST", "/auth/tokens", obj{"name": "script"}, &made)
	script := &caller{g: g, header: http.Header{"Authorization": {"Bearer " + made["token"].(string)}}}
	guest := g.login(thole.LocalUser)
	for _, tc := range []struct {
		reader *caller
		end    func()
	}{
		{script, func() { g.me.call(204, "DELETE", "/auth/tokens/"+made["id"].(string), nil, nil) }},
		{guest, func() { guest.call(204, "POST", "/auth/logout", nil, nil) }},
	} {
		var streams []*sse
		for _, path := range []string{"/events", "/sessions/" + id + "/events", "/api/chat/" + id + "/stream"} {
			s := tc.reader.stream("GET", path, nil)
			if _, ok := s.next(); !ok {
				t.Fatalf("%s told nothing", path)
			}
			streams = append(streams, s)
		}
		tc.end()
		for i, s := range streams {
			var last sseEvent
			for e, ok := s.next(); ok; e, ok = s.next() {
				last = e
			}
			if errors.Is(s.scan.Err(), context.DeadlineExceeded) || i < 2 && (last.name != "end" || last.data["reason"] != "logout") || last.raw == "[DONE]" {
				t.Errorf("%s ended with %+v", s.res.Request.URL.Path, last)
			}
		}
	}
}

// What an agent reports of its account's limits is an event, and a remark in the chat
// when little is left.
func TestLimitsAreShown(t *testing.T) {
	g := newRig(t)
	id := g.me.session(nil)
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	var run obj
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: run echo x"}, &run)
	s.until(ofType("human_loop.requested"))
	ref := thread.TurnRef{Thread: thole.ThreadID(id), Turn: thole.TurnID(run["id"].(string))}
	if err := g.db.Update(ctx, "test.read_token", func(tx *sqldb.Tx) error { // what the agent reports comes with the lease
		return tx.QueryRow(`select lease_token from turn_queue where turn_id = $1`, ref.Turn).Scan(&ref.Token)
	}); err != nil {
		t.Fatal(err)
	}
	limits := []event.Limit{{Name: "primary", Used: 82, Window: 300, Resets: time.Unix(1794790800, 0).UTC()}, {Name: "secondary", Used: 3}}
	if err := g.threads.Apply(ctx, ref, []event.Event{{ID: "limits", Kind: event.LimitsUpdated, Turn: ref.Turn, Data: event.Data{Limits: limits}}}); err != nil {
		t.Fatal(err)
	}
	all := s.until(ofType("limits.updated"))
	if got := fmt.Sprint(all[len(all)-1].data["data"].(obj)["limits"]); got != "[map[name:primary resets_at:2026-11-16T01:00:00Z used_percent:82 window_minutes:300] map[name:secondary used_percent:3]]" {
		t.Errorf("limits: %s", got)
	}
	res := g.me.do("GET", "/sessions/"+id+"/messages", nil)
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(b), "82% of the primary limit") || strings.Contains(string(b), "secondary") {
		t.Errorf("the chat: %s %v", b, err)
	}
}
