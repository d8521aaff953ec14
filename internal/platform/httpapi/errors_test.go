package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
)

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// Whatever is wrong with a request, every route says so in one shape.
func TestEveryRouteRefusesInOneShape(t *testing.T) {
	g := newRig(t, deliveries(thole.LocalUser))
	ids := mine(g)
	doc := readDocument(t, g.HTTP)
	me := g.me.with("Accept", "application/json")
	refused := func(want int, name, method, path, media string, body io.Reader, size int64) (p obj, h http.Header) {
		t.Helper()
		r := me.request(method, path, nil)
		if body != nil {
			r.Body, r.ContentLength = io.NopCloser(body), size
			r.Header.Set("Content-Type", media)
		}
		if size > 1<<20 {
			r.Header.Set("Expect", "100-continue")
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d: %.300s", name, res.StatusCode, want, b)
			return obj{}, res.Header
		}
		if err := json.Unmarshal(b, &p); err != nil || res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s, %v: %.300s", name, res.Header.Get("Content-Type"), err, b)
			return obj{}, res.Header
		}
		for _, member := range []string{"code", "detail", "title", "type", "trace_id"} {
			if s, _ := p[member].(string); s == "" {
				t.Errorf("%s: no %s: %s", name, member, b)
			}
		}
		if p["status"] != float64(want) || p["trace_id"] != res.Header.Get("X-Trace-Id") {
			t.Errorf("%s: %s", name, b)
		}
		return p, res.Header
	}
	bodies := 0
	for _, rt := range g.HTTP.Routes() {
		name, path := rt.Method+" "+rt.Path, fill(rt.Path, ids)
		p, h := refused(405, "PROPFIND for "+name, "PROPFIND", path, "", nil, 0)
		if allow := h.Get("Allow"); !strings.Contains(allow, rt.Method) || p["hint"] != "use "+allow {
			t.Errorf("%s: Allow is %q, %v", name, allow, p)
		}
		refused(404, "below "+name, rt.Method, path+"/there/is/nothing/here", "", nil, 0)
		if rt.Method == "GET" || rt.Method == "DELETE" {
			continue
		}
		limit := int64(24 << 20)
		if rt.Large {
			limit = 1 << 30
		}
		p, _ = refused(413, name+" with too much", rt.Method, path, "application/json", zeros{}, limit+1)
		if s, _ := p["detail"].(string); !strings.Contains(s, strconv.FormatInt(limit, 10)) {
			t.Errorf("%s: %v", name, p)
		}
		content, _ := doc.Paths[rt.Path][strings.ToLower(rt.Method)].Body["content"].(map[string]any)
		if content["application/json"] == nil {
			continue
		}
		bodies++
		refused(400, name+" with half a body", rt.Method, path, "application/json", strings.NewReader(`{"a":`), 5)
		refused(422, name+" with another value", rt.Method, path, "application/json", strings.NewReader(`"a"`), 3)
		if strings.HasPrefix(rt.Path, "/jobs/") { // what is no JSON is the result itself
			continue
		}
		p, _ = refused(415, name+" in another type", rt.Method, path, "application/x-unknown", strings.NewReader(`{}`), 2)
		if p["hint"] != "send Content-Type: application/json" {
			t.Errorf("%s: %v", name, p)
		}
	}
	if bodies < 20 {
		t.Errorf("only %d routes take JSON", bodies)
	}
	refused(404, "an unknown page as JSON", "GET", "/nothing/here", "", nil, 0)
	refused(404, "an unknown file", "GET", "/assets/nothing.js", "", nil, 0)
	refused(405, "a post to a page", "POST", "/c/x", "", nil, 0)
}

// A client of the AI SDK shows the body of a refusal: it is a sentence.
func TestTheChatRefusesWithASentence(t *testing.T) {
	g := newRig(t)
	res := g.me.do("POST", "/api/chat", obj{"id": "c", "messages": []obj{}})
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	if res.StatusCode != 422 || string(b) != "message is missing" || res.Header.Get("X-Thole-Code") != "invalid" || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%s %v: %s", res.Status, res.Header, b)
	}
}
