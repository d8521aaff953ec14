package workspace_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/workspace/side"
)

// A caller says what it expects to replace, and is held to it when its last byte is
// there; until then it keeps nobody from writing.
func TestWriteOnlyWhatWasExpected(t *testing.T) {
	b := newRig(t).box(newThread())
	b.put(t, "file", "old")
	h := side.Handler(b.local)
	put := func(path string, body io.Reader, header, value string) (int, string) {
		req := httptest.NewRequest("PUT", "/workspace/file?path="+path, body)
		req.Header.Set(header, value)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		return rec.Code, rec.Header().Get("ETag")
	}
	_, tag := put("file", strings.NewReader("new"), "If-Match", "*")
	for _, tc := range []struct {
		path, header, value string
		want                int
	}{
		{"none", "If-Match", "*", http.StatusConflict},
		{"none", "If-Match", tag, http.StatusConflict},
		{"file", "If-Match", `"x"`, http.StatusConflict},
		{"file", "If-None-Match", `"x", ` + tag, http.StatusConflict},
		{"file", "If-None-Match", " *", http.StatusConflict},
		{"made", "If-None-Match", "*", http.StatusOK},
		{"made", "If-None-Match", `"x"`, http.StatusOK},
		{"file", "If-Match", `"x", ` + tag, http.StatusOK},
	} {
		if code, _ := put(tc.path, strings.NewReader("again"), tc.header, tc.value); code != tc.want {
			t.Errorf("%+v: %d", tc, code)
		}
	}
	_, tag = put("file", strings.NewReader("first"), "If-Match", "*")
	slow, rest := io.Pipe()
	done := make(chan int)
	go func() {
		code, _ := put("file", slow, "If-Match", tag)
		done <- code
	}()
	if _, err := rest.Write([]byte("slow")); err != nil {
		t.Fatal(err)
	}
	if code, _ := put("file", strings.NewReader("fast"), "If-Match", tag); code != http.StatusOK {
		t.Errorf("beside a slow writer: %d", code)
	}
	rest.Close()
	if code := <-done; code != http.StatusConflict {
		t.Errorf("a slow writer over a newer version: %d", code)
	}
	if got := contents(t, b); got["file"] != "fast" || len(got) != 2 {
		t.Errorf("%q", got)
	}
}
