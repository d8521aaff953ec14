package atomicfile_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tholehq/thole/internal/atomicfile"
)

func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != len(names) {
		t.Fatalf("%v %v", list, err)
	}
	for i, e := range list {
		if e.Name() != names[i] {
			t.Fatalf("found %s", e.Name())
		}
	}
}

func TestWriteAndMode(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	check := func(want string, mode fs.FileMode) {
		t.Helper()
		b, err := os.ReadFile(path)
		fi, err2 := os.Stat(path)
		if err != nil || err2 != nil || string(b) != want || fi.Mode().Perm() != mode {
			t.Fatalf("%q %v %v", b, fi.Mode(), err)
		}
		only(t, dir, "f")
	}
	if err := atomicfile.Write(path, []byte("one"), 0o666); err != nil {
		t.Fatal(err)
	}
	check("one", 0o666)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("two", 0o640)
	boom := errors.New("boom")
	err := atomicfile.WriteFunc(path, 0o600, func(w io.Writer) error {
		_, _ = w.Write([]byte("half"))
		return boom
	})
	if !errors.Is(err, boom) || !strings.Contains(err.Error(), path) {
		t.Fatal(err)
	}
	check("two", 0o640)
}

func TestLinksAndOddThings(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	file, link := filepath.Join(dir, "real", "f"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink("real/f", link)); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(link, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Lstat(link); err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		t.Fatal("the link was replaced", err)
	}
	if b, _ := os.ReadFile(file); string(b) != "x" {
		t.Fatalf("%q", b)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{link, dir, filepath.Join(dir, "no", "such")} {
		if atomicfile.Write(p, nil, 0o600) == nil {
			t.Errorf("%s was written", p)
		}
	}
	only(t, filepath.Join(dir, "real"))
}

// TestReadersSeeWholeFiles reads while two writers replace.
func TestReadersSeeWholeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	a, b := bytes.Repeat([]byte("a"), 10000), bytes.Repeat([]byte("b"), 20000)
	if err := atomicfile.Write(path, a, 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for _, data := range [][]byte{a, b} {
		wg.Go(func() {
			for range 30 {
				if err := atomicfile.Write(path, data, 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, a) && !bytes.Equal(got, b) {
				t.Errorf("%d bytes, %v", len(got), err)
				return
			}
		}
	})
	wg.Wait()
	close(stop)
	readers.Wait()
}
