package acp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tholehq/thole/protocol/app"
)

func TestDifferences(t *testing.T) {
	move := "b"
	for name, c := range map[string]struct {
		change app.FileChange
		want   string // old > new, one for each difference
		line   int
	}{
		"update":                      {app.FileChange{Kind: app.ChangeKind{Type: "update"}, Diff: "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"}, "one\ntwo\nthree\n>one\n2\nthree\n", 1},
		"with names":                  {app.FileChange{Kind: app.ChangeKind{Type: "update"}, Diff: "--- a/x\n+++ b/x\n@@ -4 +5,2 @@\n-a\n+b\n+c\n"}, "a\n>b\nc\n", 5},
		"two hunks":                   {app.FileChange{Kind: app.ChangeKind{Type: "update"}, Diff: "@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-@@ c\n+@@ d\n"}, "a\n>b\n|@@ c\n>@@ d\n", 1},
		"no newline":                  {app.FileChange{Kind: app.ChangeKind{Type: "update"}, Diff: "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"}, "a>b", 1},
		"added":                       {app.FileChange{Kind: app.ChangeKind{Type: "add"}, Diff: "hello\n"}, "<nil>>hello\n", 1},
		"added, looks like a patch":   {app.FileChange{Kind: app.ChangeKind{Type: "add"}, Diff: "$(evil)\n@@ -0,0 +1 @@\n+hello\n"}, "<nil>>$(evil)\n@@ -0,0 +1 @@\n+hello\n", 1},
		"deleted, looks like a patch": {app.FileChange{Kind: app.ChangeKind{Type: "delete"}, Diff: "kept\n@@ -1 +0,0 @@\n-bye\n"}, "kept\n@@ -1 +0,0 @@\n-bye\n>", 1},
		"deleted":                     {app.FileChange{Kind: app.ChangeKind{Type: "delete"}, Diff: "bye\n"}, "bye\n>", 1},
		"only moved":                  {app.FileChange{Kind: app.ChangeKind{Type: "update", Move: &move}}, "", 1},
		"not a patch":                 {app.FileChange{Kind: app.ChangeKind{Type: "update"}, Diff: "@@ nonsense\n+x\n"}, "", 1},
		"broken counts":               {app.FileChange{Kind: app.ChangeKind{Type: "update"}, Diff: "@@ -1,99999 +1,99999 @@\n-a\n+b\n"}, "a\n>b\n", 1},
	} {
		var got []string
		out, line := differences(c.change, "/x")
		for _, d := range out {
			old := "<nil>"
			if d.OldText != nil {
				old = *d.OldText
			}
			got = append(got, old+">"+*d.NewText)
		}
		if all := strings.Join(got, "|"); all != c.want || line != c.line {
			t.Errorf("%s: %q at %d, want %q at %d", name, all, line, c.want, c.line)
		}
	}
}

func FuzzHunks(f *testing.F) {
	f.Add("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n")
	f.Add("@@ -0,0 +1 @@\n+\n\\ No newline at end of file")
	f.Fuzz(func(t *testing.T, patch string) {
		for _, h := range hunksOf(patch) {
			if h.line < 1 || len(h.before)+len(h.after) > 2*len(patch) {
				t.Errorf("%q gives %+v", patch, h)
			}
		}
	})
}

func TestShellLine(t *testing.T) {
	for command, want := range map[string]string{
		"ls -la":                              "ls -la",
		"/bin/bash -lc 'echo one two'":        "echo one two",
		`bash -c "echo \"a\" $HOME"`:          `echo "a" $HOME`,
		`/bin/sh -c ls`:                       "ls",
		`/bin/bash -lc 'echo '"'"'x'"'"''`:    "echo 'x'",
		"/bin/bash -lc 'one' two":             "/bin/bash -lc 'one' two",
		"/bin/bash -lc 'never closed":         "/bin/bash -lc 'never closed",
		"bash script.sh":                      "bash script.sh",
		"/usr/bin/zsh -lc 'cd /x && make it'": "cd /x && make it",
	} {
		if got := shellLine(command); got != want {
			t.Errorf("%s is %q, want %q", command, got, want)
		}
	}
}

func TestInputs(t *testing.T) {
	text, blob := "package b\n```", "AAAA"
	got, err := inputs([]block{
		{Type: "text", Text: "look"},
		{Type: "resource_link", Name: "a.go", URI: "file:///src/a.go"},
		{Type: "resource", Resource: &resource{URI: "file:///src/b.go", Text: &text}},
		{Type: "resource", Resource: &resource{URI: "file:///x.png", MimeType: "image/png", Blob: &blob}},
		{Type: "image", MimeType: "image/png", Data: "AAAA"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []app.UserInput{
		{Type: "text", Text: "look"}, {Type: "mention", Name: "a.go", Path: "/src/a.go"},
		{Type: "text", Text: "[b.go](/src/b.go):\n\n````\npackage b\n```\n````"},
		{Type: "image", URL: "data:image/png;base64,AAAA"}, {Type: "image", URL: "data:image/png;base64,AAAA"},
	}
	if a, b := string(encode(got)), string(encode(want)); a != b {
		t.Errorf("the agent gets %s, want %s", a, b)
	}
	for name, bad := range map[string][]block{
		"audio": {{Type: "audio"}}, "nothing": nil, "a file": {{Type: "resource", Resource: &resource{MimeType: "application/pdf", Blob: &blob}}},
		"an image without data": {{Type: "image", MimeType: "image/png"}}, "no image": {{Type: "image", MimeType: "text/html", Data: "AAAA"}},
	} {
		if _, err := inputs(bad); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestForm(t *testing.T) {
	list := []app.Question{
		{ID: "a", Question: "Which?", IsOther: true, Options: []app.QuestionOption{{Label: "x"}, {Label: "y"}}},
		{ID: "b", Question: "How many?"},
	}
	var form struct {
		Required   []string
		Properties map[string]json.RawMessage
	}
	if err := json.Unmarshal(questionForm(list), &form); err != nil || len(form.Properties) != 3 || len(form.Required) != 1 || form.Required[0] != "b" {
		t.Errorf("the form is %s", questionForm(list))
	}
	for content, want := range map[string]string{
		`{"a":"x","b":"3"}`:               `{"a":["x"],"b":["3"]}`,
		`{"a":"x","a_other":"z","b":"3"}`: `{"a":["z"],"b":["3"]}`,
		`{"a":["x","y"],"b":""}`:          `{"a":["x","y"],"b":null}`,
		`null`:                            `{"a":null,"b":null}`,
	} {
		if got := string(encode(formAnswers(list, json.RawMessage(content)))); got != want {
			t.Errorf("%s is read as %s, want %s", content, got, want)
		}
	}
	many := []app.Question{{ID: "a", Question: "Which?", IsOther: true, Multi: true, Options: []app.QuestionOption{{Label: "x"}, {Label: "y"}}}}
	var several struct {
		Properties map[string]struct {
			Type  string
			Items struct{ AnyOf []struct{ Const string } }
			OneOf []any
		}
	}
	if err := json.Unmarshal(questionForm(many), &several); err != nil || several.Properties["a"].Type != "array" || len(several.Properties["a"].Items.AnyOf) != 2 || several.Properties["a"].OneOf != nil {
		t.Errorf("the form of several answers is %s", questionForm(many))
	}
	if got := string(encode(formAnswers(many, json.RawMessage(`{"a":["x","y"],"a_other":"z"}`)))); got != `{"a":["x","y","z"]}` {
		t.Errorf("several answers are read as %s", got)
	}
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}}}`: true, `{"type":"object"}`: true,
		`{"type":"object","properties":{"a":{"type":"object"}}}`: false, `{"type":"array"}`: false, `7`: false,
	} {
		if simpleForm(json.RawMessage(schema)) != want {
			t.Errorf("%s: want %v", schema, want)
		}
	}
}

// A title is text: what a message shows first may be an image.
func TestFirstLine(t *testing.T) {
	image := app.UserInput{Type: "image", URL: "data:image/png;base64,AAAA"}
	for want, in := range map[string][]app.UserInput{
		"what is this?": {image, {Type: "text", Text: "what is\nthis?"}},
		"look":          {{Type: "text", Text: " "}, {Type: "text", Text: "look"}, image},
		"":              {image},
	} {
		if got := firstLine(in); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
