package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/view"
)

// changes answers with what it was asked.
type changes struct {
	asked httpapi.ChangesQuery
	fails error
}

func (c *changes) Diff(_ context.Context, _ thole.Actor, _ thole.ThreadID, q httpapi.ChangesQuery) (view.Changes, error) {
	c.asked = q
	return view.Changes{Turn: q.Turn, From: "a", To: "b", Files: []view.ChangedFile{{Path: "x", Kind: "added"}}, Total: 1, Turns: []view.TurnChanges{{Number: 1, Changed: true}}}, c.fails
}

func (c *changes) Patch(_ context.Context, _ thole.Actor, _ thole.ThreadID, q httpapi.ChangesQuery, w io.Writer) error {
	if c.asked = q; c.fails != nil {
		return c.fails
	}
	_, err := io.WriteString(w, "diff --git \xff\n")
	if q.Path == "half" {
		return errors.New("broke off")
	}
	return err
}

func (c *changes) Apply(_ context.Context, _ thole.Actor, _ thole.ThreadID, check bool) (view.Applied, error) {
	return view.Applied{Dir: "/d", Done: !check, Files: []view.ChangedFile{}, Conflicts: []view.Conflict{}}, c.fails
}

func (c *changes) Pull(_ context.Context, _ thole.Actor, _ thole.ThreadID, force bool) (view.Pulled, error) {
	return view.Pulled{Repo: "/d", Branch: map[bool]string{true: "forced", false: "thole/x"}[force], Commit: "c"}, c.fails
}

func (c *changes) Merge(context.Context, thole.Actor, thole.ThreadID) (view.Merged, error) {
	return view.Merged{Into: "main", Conflicts: []view.Conflict{{Path: "x", Why: "both"}}}, c.fails
}

func (c *changes) Push(_ context.Context, _ thole.Actor, _ thole.ThreadID, remote string, _ bool) (view.Pushed, error) {
	return view.Pushed{Remote: remote, Branch: "thole/x", Commit: "c"}, c.fails
}

func (c *changes) Undo(_ context.Context, _ thole.Actor, _ thole.ThreadID, turn int) (view.Undone, error) {
	return view.Undone{RunID: "r", Number: 2, Turn: turn}, c.fails
}

// Changes are asked for by query, come as JSON or as the bytes of a patch, and are for the
// session's own user; what refuses has its status.
func TestChangesOfASession(t *testing.T) {
	c := &changes{}
	g := newRig(t, func(cfg *httpapi.Config) { cfg.Changes = c })
	id := g.me.session(obj{})
	path := "/sessions/" + id + "/changes"
	var got obj
	g.me.call(200, "GET", path+"?turn=2&path=a%FFb&patches=true", nil, &got)
	if c.asked != (httpapi.ChangesQuery{Turn: 2, Path: "a\xffb", Patches: true, Context: 3}) || got["turn"] != 2.0 || len(got["files"].([]any)) != 1 {
		t.Errorf("%+v: %v", c.asked, got)
	}
	g.me.call(422, "GET", path+"?turn=-1", nil, nil)
	patch := func(query string) (int, string, string, error) {
		res, err := http.DefaultClient.Do(g.me.request("GET", path+"/patch"+query, nil))
		if err != nil {
			return 0, "", "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return res.StatusCode, res.Header.Get("Content-Type"), string(body), err
	}
	if status, kind, body, err := patch("?turn=1&context=0"); status != 200 || kind != "text/x-diff" || body != "diff --git \xff\n" || err != nil || c.asked != (httpapi.ChangesQuery{Turn: 1}) {
		t.Errorf("%d %s %q %v %+v", status, kind, body, err, c.asked)
	}
	if _, _, body, err := patch("?path=half"); err == nil {
		t.Errorf("a patch that broke off looks whole: %q", body)
	}
	if status, _, body, _ := patch("?turn=x"); status != 400 {
		t.Errorf("%d %s", status, body)
	}
	for _, call := range []struct {
		path   string
		body   obj
		status int
		field  string
		want   any
	}{
		{"/apply", obj{"check": true}, 200, "done", false}, {"/apply", obj{}, 200, "done", true}, {"/pull", obj{"force": true}, 200, "branch", "forced"},
		{"/merge", nil, 200, "into", "main"}, {"/push", obj{"remote": "u"}, 200, "remote", "u"}, {"/undo", obj{"turn": 3}, 201, "turn", 3.0},
	} {
		var got obj
		g.me.call(call.status, "POST", path+call.path, call.body, &got)
		if got[call.field] != call.want {
			t.Errorf("%s: %v", call.path, got)
		}
		g.you.call(404, "POST", path+call.path, call.body, nil)
	}
	g.you.call(404, "GET", path, nil, nil)
	c.fails = thole.Errorf(thole.CodeBusy, "a turn runs").WithHint("wait")
	for _, what := range []string{"/apply", "/pull", "/merge", "/push", "/undo"} {
		g.me.call(409, "POST", path+what, obj{}, nil)
	}
	if status, _, body, _ := patch(""); status != 409 || !strings.Contains(body, "a turn runs") {
		t.Errorf("%d %s", status, body)
	}
}
