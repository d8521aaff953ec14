package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tholehq/thole/protocol/app"
)

func TestShape(t *testing.T) {
	deadline := int64(1767323045500)
	for _, c := range []struct {
		v    any
		want string
	}{
		{app.Ask{AskedAtMs: deadline}, `"asked_at":"2026-01-02T03:04:05.5Z"`},
		{app.Thread{CreatedAt: 1767323045}, `"created_at":"2026-01-02T03:04:05Z"`},
		{map[string]any{"turnId": nil}, `{"turn_id":null}`},
		{map[string]any{"status": "inProgress", "text": "inProgress"}, `{"status":"running","text":"inProgress"}`},
		{map[string]any{"threadURLs": []any{map[string]any{"aB": 1.5}}}, `{"thread_urls":[{"a_b":1.5}]}`},
		// Documents and names of others stay as they are.
		{map[string]any{"metadata": json.RawMessage(`{"buildId":{"startedAt":7}}`)}, `{"metadata":{"buildId":{"startedAt":7}}}`},
		{map[string]any{"/Some/Path": 1, "HOME": 2, "a-bC": 3}, `{"/Some/Path":1,"HOME":2,"a-bC":3}`},
		{map[string]any{"expires_at": 5, "n": json.Number("12345678901234567890")}, `{"expires_at":5,"n":12345678901234567890}`},
		{[]string{}, `[]`},
	} {
		got, err := shaped(c.v)
		if err != nil || !strings.Contains(string(got), c.want) || !json.Valid(got) {
			t.Errorf("%s %v, want %s", got, err, c.want)
		}
	}
}

func TestQuietIDs(t *testing.T) {
	type job struct {
		JobID string `json:"job_id"`
		Batch string `json:"batch_id"`
	}
	for _, c := range []struct {
		v    any
		want string
	}{
		{[]job{{"j1", "b1"}, {"j2", ""}}, "j1 j2"}, {job{"j", "b"}, "j"}, {map[string]any{"thread": map[string]any{"id": "t", "cwd": "/"}}, "t"},
		{map[string]any{"a_id": "x", "id": "y"}, "y"}, {[]map[string]string{{"name": "n"}}, "n"}, {struct{}{}, ""}, {[]string{"a"}, ""},
	} {
		if got := strings.Join(ids(c.v), " "); got != c.want {
			t.Errorf("%v: %q, want %q", c.v, got, c.want)
		}
	}
}

func TestColumnsFitTheTerminal(t *testing.T) {
	id := "01a1ec1b-1652-709c-89c5-5656ae8b6a75"
	lay := func(width int) string {
		var b strings.Builder
		w := newTable(&checked{w: &b, width: width})
		putf(w, "JOB\tSUMMARY\tKIND\n%s\t%s\tbuild\n%s\t漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字\tx\n", id, strings.Repeat("long ", 20), id)
		_ = w.Flush()
		return b.String()
	}
	if out := lay(0); !strings.Contains(out, strings.Repeat("long ", 20)) {
		t.Errorf("a pipe is cut:\n%s", out)
	}
	for _, width := range []int{70, 80, 100} {
		for line := range strings.Lines(lay(width)) {
			if n := cellsOf(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d of %d cells: %s", n, width, line)
			}
		}
		if out := lay(width); strings.Count(out, id) != 2 || !strings.Contains(out, "…") || !strings.Contains(out, "build") {
			t.Errorf("%d:\n%s", width, out)
		}
	}
	threads := func(width int) string {
		var b strings.Builder
		w := newTable(&checked{w: &b, width: width})
		putf(w, "THREAD\tSTATUS\tABOUT\n%s\tidle\tone\n01a1ec1b-7652-709c-89c5-5656ae8b6a75\tidle\t%s\n", id, strings.Repeat("long ", 20))
		_ = w.Flush()
		return b.String()
	}
	if out := threads(58); strings.Count(out, id) != 1 {
		t.Errorf("an id is shortened where it fits:\n%s", out)
	}
	if out := threads(40); !strings.HasPrefix(out, "THREAD") || !strings.Contains(out, "\n01a1ec1b-1 ") || !strings.Contains(out, "\n01a1ec1b-7 ") {
		t.Errorf("40:\n%s", out)
	}
	if out := lay(20); strings.Count(out, id) != 2 {
		t.Errorf("an id is cut:\n%s", out)
	}
}
