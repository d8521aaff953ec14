package forges

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// description is GitHub's of its API, read once: it is large.
var description struct {
	once sync.Once
	doc  map[string]any
	err  error
}

func githubDescription(t testing.TB) map[string]any {
	t.Helper()
	path := lab.Octokit(t)
	d := &description
	d.once.Do(func() {
		f, err := os.Open(path)
		if err != nil {
			d.err = err
			return
		}
		defer f.Close()
		v, err := jsonschema.UnmarshalJSON(f)
		d.doc, _ = v.(map[string]any)
		d.err = err
	})
	if d.err != nil {
		t.Fatal(d.err)
	}
	return d.doc
}

// GitHub serves GitHub's API.
func GitHub(t testing.TB) *Server {
	t.Helper()
	doc := githubDescription(t)
	s := start(t, serveGitHub, "Authorization", "Bearer "+Token)
	s.judge = func(method, path string, query url.Values, body []byte) error {
		return judge(doc, method, path, query, body)
	}
	return s
}

// judge compares a request with a description. Members that it does not name are refused.
func judge(doc map[string]any, method, path string, query url.Values, body []byte) error {
	name := map[int]string{3: "/repos/{owner}/{repo}", 4: "/repos/{owner}/{repo}/pulls"}[strings.Count(path, "/")]
	item, ok := doc["paths"].(map[string]any)[name].(map[string]any)
	if !ok {
		return fmt.Errorf("GitHub describes no %s", path)
	}
	op, ok := item[strings.ToLower(method)].(map[string]any)
	if !ok {
		return fmt.Errorf("GitHub describes no %s of %s", method, name)
	}
	known := map[string]any{}
	params, _ := op["parameters"].([]any)
	for _, p := range params {
		one := p.(map[string]any)
		if ref, is := one["$ref"].(string); is {
			one = lookUp(doc, ref)
		}
		if one["in"] == "query" {
			known[one["name"].(string)] = one["schema"]
		}
	}
	for key, values := range query {
		schema, is := known[key]
		if !is {
			return fmt.Errorf("unknown parameter %q", key)
		}
		if err := validate(doc, schema, values[0]); err != nil {
			return fmt.Errorf("parameter %s: %w", key, err)
		}
	}
	wanted, has := op["requestBody"].(map[string]any)
	if !has {
		if len(body) > 0 {
			return fmt.Errorf("a body came that GitHub does not describe")
		}
		return nil
	}
	schema := wanted["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any)
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		return err
	}
	for member := range got {
		if _, is := schema["properties"].(map[string]any)[member]; !is {
			return fmt.Errorf("GitHub describes no member %q", member)
		}
	}
	return validate(doc, schema, got)
}

func lookUp(doc map[string]any, ref string) map[string]any {
	at := any(doc)
	for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		at = at.(map[string]any)[part]
	}
	return at.(map[string]any)
}

// validate judges a value by a schema of the description.
func validate(doc map[string]any, schema, v any) error {
	c := jsonschema.NewCompiler()
	whole := map[string]any{"components": doc["components"], "x-judged": schema}
	if err := c.AddResource("https://thole.test/github", whole); err != nil {
		return err
	}
	compiled, err := c.Compile("https://thole.test/github#/x-judged")
	if err != nil {
		return err
	}
	return compiled.Validate(v)
}

func serveGitHub(s *Server, w http.ResponseWriter, r *http.Request, body []byte) {
	shown := func(p Pull) map[string]any {
		return map[string]any{"number": p.Number, "html_url": fmt.Sprintf("%s/owner/name/pull/%d", s.URL, p.Number), "draft": p.Draft, "base": map[string]any{"ref": p.Base}, "head": map[string]any{"ref": p.Head}}
	}
	if r.Header.Get("Accept") != "application/vnd.github+json" || r.Header.Get("X-GitHub-Api-Version") == "" {
		s.t.Errorf("headers of %s: %v", r.URL, r.Header)
	}
	switch r.Method + " " + r.URL.EscapedPath() {
	case "GET /repos/owner/name":
		say(w, 200, map[string]any{"default_branch": "trunk"})
	case "GET /repos/owner/name/pulls":
		head, ok := strings.CutPrefix(r.URL.Query().Get("head"), "owner:")
		if !ok {
			s.t.Errorf("head %q does not name its owner, and GitHub would list everything", r.URL.Query().Get("head"))
		}
		list := []any{}
		if p, open := s.of(head, r.URL.Query().Get("base")); open {
			list = append(list, shown(p))
		}
		say(w, 200, list)
	case "POST /repos/owner/name/pulls":
		var in struct {
			Title, Body, Head, Base string
			Draft                   bool
		}
		if err := json.Unmarshal(body, &in); err != nil {
			s.t.Error(err)
		}
		if _, open := s.of(in.Head, in.Base); open {
			say(w, 422, map[string]any{"message": "Validation Failed", "errors": []any{map[string]any{"message": "A pull request already exists for owner:" + in.Head + "."}}})
			return
		}
		say(w, 201, shown(s.open(Pull{Title: in.Title, Body: in.Body, Head: in.Head, Base: in.Base, Draft: in.Draft})))
	default:
		say(w, 404, map[string]any{"message": "Not Found"})
	}
}
