package objectstest

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/objects"
)

func (h *harness) links(t *testing.T) {
	body := []byte("what was announced")
	sign := func(key string) objects.Link {
		t.Helper()
		l, err := h.s.SignPut(t.Context(), key, int64(len(body)), objects.SumOf(body), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := sign("s/one")
	if status, _ := h.do(t, "PUT", l, body); status != 200 {
		t.Fatalf("put by link: %d", status)
	}
	if got := h.get(t, "s/one", 0, -1); got != string(body) {
		t.Fatalf("stored %q", got)
	}
	// A link permits one thing: other bytes, another method, another key do not
	// count.
	for _, other := range [][]byte{[]byte("what was ANNOUNCED"), body[:5], append(bytes.Clone(body), '!'), nil} {
		if status, _ := h.do(t, "PUT", sign("s/other"), other); status/100 == 2 {
			t.Errorf("the link took %q", other)
		}
	}
	if _, err := h.s.Stat(t.Context(), "s/other"); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("refused bytes are there: %v", err)
	}
	if status, _ := h.do(t, "GET", l, nil); status/100 == 2 {
		t.Error("a link to store reads")
	}
	if status, _ := h.do(t, "DELETE", l, nil); status/100 == 2 {
		t.Error("a link to store deletes")
	}
	elsewhere := l
	elsewhere.URL = strings.Replace(l.URL, "s/one", "s/two", 1)
	if status, _ := h.do(t, "PUT", elsewhere, body); status/100 == 2 {
		t.Error("a link works for another key")
	}
	read, err := h.s.SignGet(t.Context(), "s/one", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if status, got := h.do(t, "GET", read, nil); status != 200 || got != string(body) {
		t.Errorf("get by link: %d %q", status, got)
	}
	if status, _ := h.do(t, "PUT", read, body); status/100 == 2 {
		t.Error("a link to read stores")
	}
	missing, err := h.s.SignGet(t.Context(), "s/missing", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := h.do(t, "GET", missing, nil); status != 404 {
		t.Errorf("link to nothing: %d", status)
	}
	short, err := h.s.SignGet(t.Context(), "s/one", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		if status, _ := h.do(t, "GET", short, nil); status/100 != 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a link of one second still works after ten")
		}
	}
}

func (h *harness) parts(t *testing.T) {
	s, ok := h.s.(objects.Parts)
	if !ok {
		t.Skip("the store has no parts")
	}
	whole := bytes.Repeat([]byte("0123456789abcdef"), (objects.PartSize+1<<20)/16)
	pieces := [][]byte{whole[:objects.PartSize], whole[objects.PartSize:]}
	upload, err := s.BeginParts(t.Context(), "p/large")
	if err != nil {
		t.Fatal(err)
	}
	var parts []objects.Part
	for i, p := range pieces {
		l, err := s.SignPart(t.Context(), "p/large", upload, i+1, int64(len(p)), objects.SumOf(p), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			if status, _ := h.do(t, "PUT", l, bytes.ToUpper(p)); status/100 == 2 {
				t.Error("a part took other bytes")
			}
		}
		status, etag := h.do(t, "PUT", l, p)
		if status != 200 {
			t.Fatalf("part %d: %d", i+1, status)
		}
		parts = append(parts, objects.Part{Number: i + 1, ETag: etag, Size: int64(len(p)), Sum: objects.SumOf(p)})
	}
	if _, err := h.s.Stat(t.Context(), "p/large"); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("an object is there before its upload ended: %v", err)
	}
	if err := s.EndParts(t.Context(), "p/large", upload, parts[1:]); err == nil {
		t.Error("ended without its first part")
	}
	if err := s.EndParts(t.Context(), "p/large", upload, parts); err != nil {
		t.Fatal(err)
	}
	if info, err := h.s.Stat(t.Context(), "p/large"); err != nil || info.Size != int64(len(whole)) {
		t.Fatalf("%+v, %v", info, err)
	}
	if got := h.get(t, "p/large", objects.PartSize-8, 16); got != "89abcdef01234567" {
		t.Errorf("over the seam: %q", got)
	}
	gone, err := s.BeginParts(t.Context(), "p/gone")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.AbortParts(t.Context(), "p/gone", gone); err != nil {
			t.Error(err)
		}
	}
	if err := s.EndParts(t.Context(), "p/gone", gone, parts[:1]); err == nil {
		t.Error("an aborted upload ended")
	}
}
