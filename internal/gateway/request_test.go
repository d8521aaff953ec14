package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/testkit/upstream"
)

func TestRequestsAreReadStrictly(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `{`, `{"model":"m"} {}`, `{"model":"m","model":"n"}`, `{"model":"m","Model":"n"}`, `{"Model":"m"}`, `{"model":1}`, `{"model":""}`, `{}`,
		`{"model":"m","mod\u0065l":"n"}`, `{"model":"m",/**/"x":1}`, `{"model":"m","Store":true}`, `{"model":"m","ſtore":true}`, `{"model":"m","TOOLS":[]}`,
		`{"model":"m","max_tokens":-1}`, `{"model":"m","max_tokens":1e9}`, `{"model":"m","max_tokens":"5"}`, `{"model":"m","n":99999999999}`, `{"model":"m","stream":1}`,
		`{"model":"m","store":true}`, `{"model":"m","background":true}`, `{"model":"m","previous_response_id":"r"}`, `{"model":"m","conversation":"c"}`,
		`{"model":"m","prompt":{"id":"p"}}`, `{"model":"m","container":"c"}`, `{"model":"m","mcp_servers":[{"url":"http://x"}]}`, `{"model":"m","plugins":[{"id":"web"}]}`,
		`{"model":"m","web_search_options":{"a":1}}`, `{"model":"m","api_base":"http://127.0.0.1"}`, `{"model":"m","base_url":"x"}`, `{"model":"m","models":["big"]}`,
		`{"model":"m","fallbacks":["big"]}`, `{"model":"m","extra_headers":{}}`,
		`{"model":"m","tools":[1]}`, `{"model":"m","tools":[{"type":1}]}`, `{"model":"m","tools":[{"type":"function","type":"web_search"}]}`,
		`{"model":"m","tools":[{"type":"function"},{"type":"web_search"}]}`, `{"model":"m","tools":[{"Type":"web_search_20250305"}]}`,
		`{"model":"m","tools":[{"type":"web_search_20250305"}]}`, `{"model":"m","tools":[{"type":"web_fetch_20250910"}]}`, `{"model":"m","tools":[{"type":"code_execution_20250825"}]}`,
		`{"model":"m","tools":[{"type":"computer_20250124"}]}`, `{"model":"m","tools":[{"type":"mcp_toolset"}]}`, `{"model":"m","tools":[{"type":"mcp","server_url":"http://x"}]}`,
		`{"model":"m","tools":[{"type":"file_search"}]}`, `{"model":"m","tools":[{"type":"code_interpreter"}]}`, `{"model":"m","tools":[{"type":"image_generation"}]}`,
		`{"model":"m","tools":[{"type":"web_search_preview"}]}`, `{"model":"m","tools":[{"type":"computer_use_preview"}]}`, `{"model":"m","tools":[{"type":"future_tool"}]}`,
		`{"model":"m","tools":[{"type":"shell","environment":{"type":"container_auto"}}]}`, `{"model":"m","tools":[{"type":"shell"}]}`,
		`{"model":"m","tools":[{"type":"namespace","tools":[{"type":"web_search"}]}]}`,
		`{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"web_search"}]}]}`, `{"model":"m","input":[{"type":"x","Tools":[{"type":"web_search"}]}]}`,
		`{"model":"m","input":[{"type":"item_reference","id":"i"}]}`, `{"model":"m","input":[{"type":"item\u005freference","id":"i"}]}`, `{"model":"m","input":[{"type":1}]}`, `{"model":"m","input":["x"]}`,
		`{"model":"m:online"}`, `{"model":"m:\u004fnline"}`,
		`{"model":"m","tools":` + strings.Repeat(`[{"type":"namespace","tools":`, 9) + `[]` + strings.Repeat(`}]`, 9) + `}`,
	} {
		for _, d := range dialects {
			if q, f := parseRequest(d, []byte(body), Grants{}); f == nil {
				t.Errorf("%s: %s became %+v", d, body, q)
			}
		}
	}
}

func TestGoodRequests(t *testing.T) {
	for _, c := range []struct {
		d      Dialect
		body   string
		grants Grants
		limit  int64
	}{
		{Anthropic, `{"model":"m","max_tokens":7,"tools":[{"name":"a"},{"type":"custom"},{"type":"bash_20250124"},{"type":"text_editor_20250728"}],"system":"STORE","Metadata":1}`, Grants{}, 7},
		{Anthropic, `{"model":"m","max_tokens":7,"tools":[{"type":"web_search_20250305"}],"mcp_servers":[{}]}`, Grants{Tools: true}, 7},
		{Anthropic, `{"model":"m","max_tokens":7,"tools":[],"mcp_servers":[],"container":null}`, Grants{}, 7},
		{Responses, `{"model":"m","store":false,"background":false,"previous_response_id":null,"tools":[{"type":"function"},{"type":"custom"},{"type":"tool_search"},{"type":"shell","environment":{"type":"local"}},{"type":"namespace","tools":[{"type":"function"}]}]}`, Grants{}, maxOutput},
		{Responses, `{"model":"m","store":true,"previous_response_id":"r","max_output_tokens":null}`, Grants{Stored: true}, maxOutput},
		{Chat, `{"model":"m","max_tokens":7,"max_completion_tokens":9,"n":3,"functions":[{"name":"f"}]}`, Grants{}, 27},
		// A limit of another dialect bounds nothing.
		{Chat, `{"model":"m","max_output_tokens":1}`, Grants{}, maxOutput},
		{Responses, `{"model":"m","max_tokens":1,"max_completion_tokens":1}`, Grants{}, maxOutput},
		{Anthropic, `{"model":"m","max_output_tokens":1,"max_tokens":7}`, Grants{}, 7},
	} {
		q, f := parseRequest(c.d, []byte(c.body), c.grants)
		if f != nil || q.model != "m" || q.limit != c.limit {
			t.Errorf("%s: %+v, %v", c.body, q, f)
		}
	}
}

func TestModelPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"m", "m", true}, {"m", "mm", false}, {"m*", "m-1", true}, {"*", "", true}, {"*-1", "m-1", true}, {"a*c*e", "abcde", true}, {"a*c*e", "ace", true},
		{"a*c*e", "abde", false}, {"a*a", "a", false}, {"a**b", "ab", true}, {"[m]", "m", false}, {"m", "M", false},
	} {
		if got := matchModel(c.pattern, c.name); got != c.want {
			t.Errorf("%s %s: %v", c.pattern, c.name, got)
		}
	}
	for _, d := range dialects {
		s := upstream.Start(t, upstream.None)
		other := upstream.Start(t, upstream.None)
		r := newRig(t, d, other, s)
		r.route.Upstreams[0].Models = []string{"big-*"}
		r.route.Upstreams[1].Models = []string{"m-*"}
		if got := r.post(t); got.status != 200 || len(other.Requests()) != 0 {
			t.Errorf("%+v", got)
		}
		r.route.Upstreams = r.route.Upstreams[:1]
		got := r.post(t)
		if want := map[Dialect]int{Anthropic: 404}[d]; got.status != max(want, 400) || !shaped(d, got.body) || !strings.Contains(got.body, `m-1`) {
			t.Errorf("%+v", got)
		}
	}
}

func TestLongBodies(t *testing.T) {
	s := upstream.Start(t, upstream.None)
	r := newRig(t, Chat, s)
	long := `{"model":"m-1","stream":true,"messages":"` + strings.Repeat("x", 3<<20) + `"}`
	if got := ask(r.client(t), http.MethodPost, "http://gw"+paths[Chat], long); got.status != 200 || string(s.Requests()[0].Body) != long {
		t.Errorf("%+v", got)
	}
	if got := r.raw(t, "POST "+paths[Chat]+" HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer "+goodToken+"\r\nContent-Length: 67108865\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 413 ") {
		t.Error(clip(got))
	}
	for thread, n := range map[thole.ThreadID]int64{"other": maxBodies, "t": maxShare} {
		r.bodies.take(thread, n)
		if got := r.post(t); got.status != 429 || got.header.Get("Retry-After") == "" {
			t.Errorf("%s: %+v", thread, got)
		}
		r.bodies.take(thread, -n)
	}
	r.bodies.take("other", maxShare)
	if got := r.post(t); got.status != 200 {
		t.Errorf("the share of another thread: %+v", got)
	}
	r.ledger.results(t)
	if n := r.bodies.all; n != maxShare || len(r.bodies.of) != 1 {
		t.Errorf("%d bytes were not given back: %v", n-maxShare, r.bodies.of)
	}
	if got := r.post(t, "Content-Encoding", "gzip"); got.status != 400 {
		t.Errorf("%+v", got)
	}
}

func TestInputEstimate(t *testing.T) {
	text := strings.Repeat("some words ", 1000)
	image := strings.Repeat("iVBORw0KGgo+/", 100_000)
	for _, c := range []struct {
		body     string
		min, max int64
	}{
		{text, 5500, 5502},
		{`{"data":"` + image + `"}`, 20_000, 21_000},
		{`{"url":"data:image/png;base64,` + image + `"}`, 20_000, 21_000},
		{`{"text":"` + image[:4000] + `"}`, 2000, 2100},
		{`{"text":"` + image + ` "}`, 650_000, 651_000},
		{`{"text" : "` + image + `"}`, 650_000, 651_000},
		{`{"text":"data:image/png;base64,` + image + `"}`, 650_000, 651_000},
		{`["` + image + `"]`, 650_000, 651_000},
		{`{"data" : "` + image + `"}`, 20_000, 21_000},
		{strings.Repeat("some words ", 1_000_000), maxInput, maxInput},
	} {
		if got := inputEstimate([]byte(c.body)); got < c.min || got > c.max {
			t.Errorf("%.40s: %d", c.body, got)
		}
	}
}

// FuzzRequest: what is accepted names one model, which every reader of JSON finds.
func FuzzRequest(f *testing.F) {
	for _, d := range dialects {
		f.Add([]byte(bodies[d]), uint8(0))
	}
	f.Add([]byte(`{"model":"m","tools":[{"type":"namespace","tools":[{}]}],"n":2}`), uint8(1))
	f.Fuzz(func(t *testing.T, body []byte, which uint8) {
		inputEstimate(body)
		q, refused := parseRequest(dialects[int(which)%len(dialects)], body, Grants{})
		if refused != nil {
			return
		}
		var loose struct{ Model, Store, API_Base any } // in any case, the last one wins
		if err := json.Unmarshal(body, &loose); err != nil || loose.Model != q.model || loose.API_Base != nil || loose.Store == true {
			t.Fatalf("%q: %q and %+v, %v", body, q.model, loose, err)
		}
		if q.limit < 1 {
			t.Fatalf("%q: %d", body, q.limit)
		}
		var renamed struct{ Model string }
		if err := json.Unmarshal(q.named("other"), &renamed); err != nil || renamed.Model != "other" {
			t.Fatalf("%q: %v", q.named("other"), err)
		}
	})
}

// TestAnnouncedBodies: memory is taken for what came, not for what was announced, and not
// at all for what there is no room for.
func TestAnnouncedBodies(t *testing.T) {
	g := New(Config{})
	defer g.Close()
	for _, full := range []int64{0, maxShare} {
		g.bodies.take("t", full)
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 300<<10)))
		r.ContentLength = maxBody
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		body, free, f := g.readBody(httptest.NewRecorder(), r, "t")
		runtime.ReadMemStats(&after)
		free()
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%d bytes for a body of 300 KiB", n)
		}
		if full > 0 && (f == nil || f.kind != overloaded) || full == 0 && len(body) != 300<<10 {
			t.Errorf("%d bytes, %+v", len(body), f)
		}
	}
}
