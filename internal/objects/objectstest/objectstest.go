// Package objectstest is the contract of objects.Store as tests that every
// implementation passes.
package objectstest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// Run checks a store that is empty.
func Run(t *testing.T, s objects.Store) { RunOver(t, s, &http.Transport{DisableKeepAlives: true}) }

// RunOver is Run with links that are followed over a transport.
func RunOver(t *testing.T, s objects.Store, over http.RoundTripper) {
	h := &harness{t, s, &http.Client{Transport: over}}
	t.Run("bytes", h.bytes)
	t.Run("keys", h.keys)
	t.Run("list", h.list)
	t.Run("links", h.links)
	t.Run("parts", h.parts)
}

type harness struct {
	t    *testing.T
	s    objects.Store
	http *http.Client
}

func put(t *testing.T, s objects.Store, key, body string) {
	t.Helper()
	if err := s.Put(t.Context(), key, strings.NewReader(body), int64(len(body))); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) get(t *testing.T, key string, off, n int64) string {
	t.Helper()
	r, err := h.s.Get(t.Context(), key, off, n)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (h *harness) bytes(t *testing.T) {
	put(t, h.s, "b/one", "0123456789")
	put(t, h.s, "b/empty", "")
	for _, tc := range []struct {
		off, n int64
		want   string
	}{{0, -1, "0123456789"}, {3, 4, "3456"}, {9, 1, "9"}, {4, -1, "456789"}, {2, 0, ""}} {
		if got := h.get(t, "b/one", tc.off, tc.n); got != tc.want {
			t.Errorf("bytes %d+%d are %q", tc.off, tc.n, got)
		}
	}
	if got := h.get(t, "b/empty", 0, -1); got != "" {
		t.Errorf("empty object is %q", got)
	}
	if _, err := h.s.Get(t.Context(), "b/one", 5, 100); err == nil {
		t.Error("read past the end")
	}
	put(t, h.s, "b/one", "changed")
	if got := h.get(t, "b/one", 0, -1); got != "changed" {
		t.Errorf("replaced object is %q", got)
	}
	if info, err := h.s.Stat(t.Context(), "b/one"); err != nil || info.Size != 7 || info.ETag == "" || time.Since(info.Modified) > time.Hour {
		t.Errorf("stat %+v, %v", info, err)
	}
	for _, size := range []int64{3, 100} {
		if err := h.s.Put(t.Context(), "b/size", strings.NewReader("12345"), size); err == nil {
			t.Errorf("5 bytes were stored as %d", size)
		}
		if _, err := h.s.Stat(t.Context(), "b/size"); !errors.Is(err, objects.ErrNotFound) {
			t.Errorf("a refused object is there: %v", err)
		}
	}
	if err := h.s.Delete(t.Context(), "b/one"); err != nil {
		t.Error(err)
	}
	if err := h.s.Delete(t.Context(), "b/one"); err != nil {
		t.Errorf("second delete: %v", err)
	}
	if _, err := h.s.Stat(t.Context(), "b/one"); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("deleted object: %v", err)
	}
	if _, err := h.s.Get(t.Context(), "b/never", 0, -1); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("unknown object: %v", err)
	}
}

func (h *harness) keys(t *testing.T) {
	for _, key := range []string{"", "/", "a/", "/a", "a//b", "../a", "a/../b", "a/.", "a\x00b", "a\nb", `a\b`, strings.Repeat("x", 300), "\xff"} {
		if err := h.s.Put(t.Context(), key, strings.NewReader("x"), 1); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("put %q: %v", key, err)
		}
		if _, err := h.s.Get(t.Context(), key, 0, -1); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("get %q: %v", key, err)
		}
		if _, err := h.s.SignPut(t.Context(), key, 1, objects.SumOf([]byte("x")), time.Minute); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("sign %q: %v", key, err)
		}
	}
	for _, key := range []string{"k/with space", "k/plus+and%25", "k/ünï", "k/a?b&c=d#e", "k/..x", "k/.hidden"} {
		put(t, h.s, key, key)
		link, err := h.s.SignGet(t.Context(), key, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if status, body := h.do(t, "GET", link, nil); status != 200 || body != key {
			t.Errorf("link to %q answers %d %q", key, status, body)
		}
	}
}

func (h *harness) list(t *testing.T) {
	want := []string{"l/a-b", "l/a/1", "l/a/2", "l/b/c/d", "l/z"}
	for _, key := range want {
		put(t, h.s, key, key)
	}
	put(t, h.s, "lx", "outside")
	for _, limit := range []int{1, 2, 4, 100} {
		var got []string
		for after := ""; ; {
			page, err := h.s.List(t.Context(), "l/", after, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range page {
				got = append(got, i.Key)
				after = i.Key
			}
			if len(page) < limit {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %d: %q", limit, got)
		}
	}
	if page, err := h.s.List(t.Context(), "none/", "", 10); err != nil || len(page) != 0 {
		t.Errorf("nothing lists as %v, %v", page, err)
	}
}

func (h *harness) do(t *testing.T, method string, l objects.Link, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, l.URL, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range l.Headers {
		req.Header.Set(k, v)
	}
	resp, err := h.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if method == "PUT" {
		return resp.StatusCode, resp.Header.Get("ETag")
	}
	return resp.StatusCode, string(out)
}
