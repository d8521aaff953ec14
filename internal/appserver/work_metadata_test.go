package appserver_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// What a client says of a thread's repository stays with it, field by field, and does not make
// the conversation newer. A bad request changes nothing.
func TestMetadata(t *testing.T) {
	b := newBare(t, nil)
	w, other := b.join(), b.join()
	id := w.thread(`{}`)
	read := func(w *wire) (git, updated any) {
		got, _ := w.ok("thread/read", ofThread(id))["thread"].(map[string]any)
		return got["gitInfo"], got["updatedAt"]
	}
	is := func(want string) {
		t.Helper()
		git, _ := read(other)
		if got, _ := json.Marshal(git); string(got) != want {
			t.Errorf("gitInfo is %s, want %s", got, want)
		}
	}
	is("null")
	_, before := read(w)
	w.ok("thread/metadata/update", ofThread(id, `"gitInfo":{"branch":" b1 ","sha":"abc"}`))
	is(`{"branch":"b1","originUrl":null,"sha":"abc"}`)
	for params, words := range map[string]string{
		`"gitInfo":{"branch":"b2","sha":"  "}`:                  "gitInfo.sha must not be empty",
		`"gitInfo":{"branch":""}`:                               "gitInfo.branch must not be empty",
		`"gitInfo":{"branch":7}`:                                "gitInfo.branch is not a string",
		`"gitInfo":{}`:                                          "gitInfo must include at least one field",
		`"gitInfo":null`:                                        "must include at least one field",
		`"gitInfo":{"branch":"b2"},"projectId":"p"`:             "project not found: p",
		`"gitInfo":{"branch":"b2"},"daybreakEnabled":true`:      "daybreakEnabled is not supported",
		`"gitInfo":{"sha":"` + strings.Repeat("a", 3000) + `"}`: "longer than",
	} {
		if e := w.refused("thread/metadata/update", ofThread(id, params)); !strings.Contains(e.Message, words) {
			t.Errorf("%.60s: %q", params, e.Message)
		}
	}
	is(`{"branch":"b1","originUrl":null,"sha":"abc"}`)
	w.ok("thread/metadata/update", ofThread(id, `"gitInfo":{"branch":null,"originUrl":"https://example.org/a.git"},"projectId":""`))
	is(`{"branch":null,"originUrl":"https://example.org/a.git","sha":"abc"}`)
	if _, after := read(w); after != before {
		t.Errorf("the conversation was changed at %v, and now at %v", before, after)
	}
	w.ok("thread/metadata/update", ofThread(id, `"gitInfo":{"sha":null,"originUrl":null}`))
	is("null")
}
