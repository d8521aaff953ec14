package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Readers that are in step share the bytes they are sent. Half of these follow
// two sessions, so that something else stands between the shared frames.
func TestManyReadersOfABusySession(t *testing.T) {
	g := newRig(t)
	id, other := g.me.session(obj{"execution_profile": "full"}), g.me.session(obj{"execution_profile": "full"})
	var readers []*sse
	for range 10 {
		readers = append(readers, g.me.stream("GET", "/sessions/"+id+"/events", nil), g.me.stream("GET", "/events?sessions="+id+","+other, nil))
	}
	text := strings.Repeat("0123456789", 60)
	g.me.call(201, "POST", "/sessions/"+other+"/runs", obj{"text": "sim: slow 3ms 2 ;; say " + strings.Repeat("x", 400)}, nil)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: slow 3ms 2 ;; say " + text}, nil)
	var all sync.WaitGroup
	for _, s := range readers {
		all.Go(func() {
			var got []byte
			for {
				e, ok := s.next()
				if !ok {
					t.Errorf("the stream ended: %v", s.scan.Err())
					return
				}
				if e.data["session_id"] != id {
					continue
				}
				d, _ := e.data["data"].(obj)
				switch e.data["type"] {
				case "item.delta":
					at, delta := int(d["offset"].(float64)), d["delta"].(string)
					if at != len(got) {
						t.Errorf("text at %d after %d", at, len(got))
					}
					got = append(got, delta...)
				case "run.ended":
					if string(got) != text {
						t.Errorf("the reader was told %q", got)
					}
					return
				}
			}
		})
	}
	all.Wait()
}

// HTTP/2 gives no connection away; the stream is the same.
func TestEventsOverHTTP2(t *testing.T) {
	g := newRig(t)
	id, last := finished(g, "sim: say hello")
	srv := httptest.NewUnstartedServer(g.HTTP)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	r := g.me.request("GET", "/sessions/"+id+"/events?after=0", nil)
	r.URL.Scheme, r.URL.Host = "https", strings.TrimPrefix(srv.URL, "https://")
	r.Host = r.URL.Host
	res, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.ProtoMajor != 2 || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", res.Proto, res.Status)
	}
	newSSE(t, res).until(func(e sseEvent) bool { return seq(e) == last })
}
