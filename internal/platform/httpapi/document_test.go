package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/platform/httpapi"
)

// document is the served OpenAPI document, with the schemas of its answers.
type document struct {
	Paths map[string]map[string]struct {
		Parameters []struct{ In, Name string }
		Body       map[string]any `json:"requestBody"`
		Responses  map[string]response
	}
	Components struct{ Responses map[string]response }
	compiler   *jsonschema.Compiler
}

type response struct {
	Ref     string `json:"$ref"`
	Content map[string]any
}

func readDocument(t testing.TB, s *httpapi.Server) *document {
	t.Helper()
	b, err := s.Document()
	if err != nil {
		t.Fatal(err)
	}
	d := &document{compiler: jsonschema.NewCompiler()}
	if err := json.Unmarshal(b, d); err != nil {
		t.Fatal(err)
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	d.compiler.AssertFormat()
	if err := d.compiler.AddResource("openapi.json", tree); err != nil {
		t.Fatal(err)
	}
	return d
}

// find returns the path's template, "" when the document has none.
func (d *document) find(method, path string) string {
	best := ""
	for template, operations := range d.Paths {
		if _, ok := operations[strings.ToLower(method)]; !ok {
			continue
		}
		want, have := strings.Split(template, "/"), strings.Split(path, "/")
		if slices.EqualFunc(want, have, func(w, h string) bool { return w == h || h != "" && strings.HasPrefix(w, "{") }) && (best == "" || strings.Count(template, "{") < strings.Count(best, "{")) {
			best = template
		}
	}
	return best
}

// check says what an answer has that the document has not.
func (d *document) check(method, template string, status int, kind string, body []byte) error {
	answer, known := d.Paths[template][strings.ToLower(method)].Responses[strconv.Itoa(status)]
	if !known {
		return fmt.Errorf("the document has no status %d", status)
	}
	at := []string{"paths", template, strings.ToLower(method), "responses", strconv.Itoa(status)}
	if answer.Ref != "" {
		at = strings.Split(answer.Ref, "/")[1:]
		answer = d.Components.Responses[at[2]]
	}
	media, _, _ := mime.ParseMediaType(kind)
	if len(body) == 0 && (len(answer.Content) == 0 || media == "text/event-stream") {
		return nil
	}
	if _, known := answer.Content[media]; !known {
		return fmt.Errorf("the document has no %q for status %d, only %v", kind, status, slices.Collect(maps.Keys(answer.Content)))
	}
	where := "openapi.json#"
	for _, key := range append(at, "content", media, "schema") {
		where += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(key)
	}
	schema, err := d.compiler.Compile(where)
	if err != nil {
		return err
	}
	values := [][]byte{body}
	switch {
	case media == "text/event-stream":
		values = nil
		for line := range strings.Lines(string(body)) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && strings.HasSuffix(data, "\n") && data != "[DONE]\n" {
				values = append(values, []byte(data))
			}
		}
	case !strings.HasSuffix(media, "json"):
		text, _ := json.Marshal(string(body))
		values = [][]byte{text}
	}
	for _, v := range values {
		tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(v))
		if err != nil {
			return fmt.Errorf("%w in %s", err, v)
		}
		if err := schema.Validate(tree); err != nil {
			return fmt.Errorf("%w\nin %s", err, v)
		}
	}
	return nil
}

// recorder holds every answer that the tests of this package get against the
// document of the server that gave it.
type recorder struct {
	http.RoundTripper
	mu    sync.Mutex
	sites map[string]*site
}

type site struct {
	t   testing.TB
	mu  sync.Mutex // compiling is not for two at once
	doc *document
}

var answers = &recorder{RoundTripper: http.DefaultTransport, sites: map[string]*site{}}

func init() { http.DefaultClient.Transport = answers }

// watch checks what the server at url answers until the test ends.
func (r *recorder) watch(t testing.TB, url string, s *httpapi.Server) {
	host := strings.TrimPrefix(url, "http://")
	r.mu.Lock()
	r.sites[host] = &site{t: t, doc: readDocument(t, s)}
	r.mu.Unlock()
	t.Cleanup(func() {
		r.mu.Lock()
		delete(r.sites, host)
		r.mu.Unlock()
	})
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := r.RoundTripper.RoundTrip(req)
	r.mu.Lock()
	s := r.sites[req.URL.Host]
	r.mu.Unlock()
	if err != nil || s == nil || req.Method == http.MethodHead {
		return res, err
	}
	template := s.doc.find(req.Method, req.URL.Path)
	if template == "" || strings.Contains(req.Header.Get("Accept"), "text/html") {
		return res, nil // the page, or nothing; TestDocumentHasEveryRoute sees to the rest
	}
	res.Body = &recorded{ReadCloser: res.Body, done: func(body []byte, whole bool) {
		kind := res.Header.Get("Content-Type")
		if !whole && kind != "text/event-stream" {
			return // half of a body proves nothing
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.doc.check(req.Method, template, res.StatusCode, kind, body); err != nil {
			s.t.Errorf("%s %s answers %d: %v", req.Method, template, res.StatusCode, err)
		}
	}}
	return res, nil
}

// recorded keeps what was read of a body.
type recorded struct {
	io.ReadCloser
	mu   sync.Mutex
	read []byte
	end  bool
	done func(body []byte, whole bool)
}

func (b *recorded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	b.read, b.end = append(b.read, p[:n]...), b.end || err == io.EOF
	b.mu.Unlock()
	return n, err
}

func (b *recorded) Close() error {
	b.mu.Lock()
	done := b.done
	b.done = nil
	read, end := b.read, b.end
	b.mu.Unlock()
	if done != nil {
		done(read, end)
	}
	return b.ReadCloser.Close()
}

func TestDocumentHasEveryRoute(t *testing.T) {
	g := newRig(t, func(c *httpapi.Config) { c.Metrics = http.NotFoundHandler() })
	doc := readDocument(t, g.HTTP)
	served := map[string]bool{}
	for _, rt := range g.HTTP.Routes() {
		served[rt.Method+" "+rt.Path] = true
		if _, ok := doc.Paths[rt.Path][strings.ToLower(rt.Method)]; !ok {
			t.Errorf("the document lacks %s %s", rt.Method, rt.Path)
		}
	}
	for path, operations := range doc.Paths {
		for method, op := range operations {
			name := strings.ToUpper(method) + " " + path
			if !served[name] {
				t.Errorf("the document has %s, which is not served", name)
			}
			// A name in a path that no handler reads would find nothing, always.
			for part := range strings.SplitSeq(path, "/") {
				known := slices.ContainsFunc(op.Parameters, func(p struct{ In, Name string }) bool { return p.In == "path" && "{"+p.Name+"}" == part })
				if strings.HasPrefix(part, "{") && !known {
					t.Errorf("%s does not read %s", name, part)
				}
			}
		}
	}
}

var codes = []thole.Code{
	thole.CodeInvalid, thole.CodeNotFound, thole.CodeConflict, thole.CodeBusy, thole.CodeForbidden, thole.CodeUnauthorized,
	thole.CodeOverloaded, thole.CodeUnavailable, thole.CodeUnsupported, thole.CodeHeld, thole.CodeGone, thole.CodeInternal,
}

// Every refusal that the machines know can come out of any of their calls, so
// every operation names its status.
func TestDocumentHasEveryStatus(t *testing.T) {
	g := newRig(t)
	doc := readDocument(t, g.HTTP)
	for path, operations := range doc.Paths {
		if path == "/healthz" { // asks nobody
			continue
		}
		for method, op := range operations {
			want := []int{http.StatusForbidden, http.StatusInternalServerError}
			for _, code := range codes {
				want = append(want, jsonhttp.Status(code))
			}
			if op.Body != nil {
				want = append(want, http.StatusRequestEntityTooLarge)
			}
			for _, p := range op.Parameters {
				if p.Name == "If-Match" {
					want = append(want, http.StatusPreconditionFailed)
				}
			}
			for _, status := range want {
				if _, ok := op.Responses[strconv.Itoa(status)]; !ok {
					t.Errorf("%s %s: the document lacks status %d", method, path, status)
				}
			}
		}
	}
}

// The recorder can fail: an answer that is not the document's is reported.
func TestDocumentRefusesOtherAnswers(t *testing.T) {
	g := newRig(t)
	doc := readDocument(t, g.HTTP)
	for _, c := range []struct {
		status     int
		kind, body string
	}{
		{418, "application/json", `{"status":"ok","version":"1"}`},
		{200, "text/html", `{"status":"ok","version":"1"}`},
		{200, "application/json", `{"status":"ok"}`},
		{200, "application/json", `{"status":"ok","version":1}`},
		{200, "application/json", `{"status":"ok","version":"1","more":true}`},
	} {
		if err := doc.check("GET", "/healthz", c.status, c.kind, []byte(c.body)); err == nil {
			t.Errorf("%d %s %s passes", c.status, c.kind, c.body)
		}
	}
	if err := doc.check("GET", "/healthz", 200, "application/json", []byte(`{"status":"ok","version":"1"}`)); err != nil {
		t.Error(err)
	}
}
