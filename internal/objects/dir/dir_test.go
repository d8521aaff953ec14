package dir_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/objects/objectstest"
	"golang.org/x/sync/errgroup"
)

func open(t *testing.T) (*dir.Store, string) {
	t.Helper()
	root := t.TempDir()
	var handler http.Handler
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	t.Cleanup(srv.Close)
	s, err := dir.Open(root, srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	handler = s.Handler()
	return s, root
}

func TestContract(t *testing.T) {
	s, _ := open(t)
	objectstest.Run(t, s)
}

func TestNothingLeavesTheDirectory(t *testing.T) {
	s, root := open(t)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, "data", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(root, "data", "way")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"link", "way/secret"} {
		if _, err := s.Get(t.Context(), key, 0, -1); err == nil {
			t.Errorf("%s was read", key)
		}
	}
	if err := s.Put(t.Context(), "way/new", strings.NewReader("x"), 1); err == nil {
		t.Error("way/new was written")
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(outside), "new")); err == nil {
		t.Error("a file appeared outside")
	}
}

func TestUploadsThatNeverEndGo(t *testing.T) {
	s, root := open(t)
	if _, err := s.BeginParts(t.Context(), "a/b"); err != nil {
		t.Fatal(err)
	}
	left := func() int {
		e, err := os.ReadDir(filepath.Join(root, "incoming"))
		if err != nil {
			t.Fatal(err)
		}
		return len(e)
	}
	if err := s.Sweep(time.Now().Add(-time.Hour)); err != nil || left() != 1 {
		t.Fatalf("%d left, %v", left(), err)
	}
	if err := s.Sweep(time.Now().Add(time.Hour)); err != nil || left() != 0 {
		t.Fatalf("%d left, %v", left(), err)
	}
}

// Directories go with the last object in them.
func TestNoEmptyDirectoriesStay(t *testing.T) {
	s, root := open(t)
	for _, key := range []string{"a/b/c/one", "a/b/two"} {
		if err := s.Put(t.Context(), key, strings.NewReader("x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), "a/b/c/one"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(t.Context(), "a/b/two"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "data", "a", "b", "c")); err == nil {
		t.Error("an empty directory stays")
	}
	if err := s.Delete(t.Context(), "a/b/two"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(root, "data")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A file finds its place also while the last one next to it goes.
func TestPutBesideDelete(t *testing.T) {
	s, _ := open(t)
	var group errgroup.Group
	for _, key := range []string{"a/b/one", "a/b/two", "a/c/one"} {
		group.Go(func() error {
			for range 50 {
				if err := s.Put(t.Context(), key, strings.NewReader("x"), 1); err != nil {
					return err
				}
				if err := s.Delete(t.Context(), key); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
