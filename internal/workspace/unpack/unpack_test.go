package unpack_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/unpack"
)

// member is one entry of an archive that a test makes.
type member struct {
	name string
	kind byte // of tar
	mode int64
	body string
	link string
}

var stamp = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

func tarOf(t testing.TB, list []member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range list {
		h := &tar.Header{Name: m.name, Typeflag: m.kind, Mode: m.mode, Size: int64(len(m.body)), Linkname: m.link, ModTime: stamp}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t testing.TB, list []member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range list {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: stamp}
		mode := os.FileMode(m.mode)
		body := m.body
		switch m.kind {
		case tar.TypeSymlink:
			mode, body = mode|os.ModeSymlink, m.link
		case tar.TypeDir:
			mode |= os.ModeDir
		case tar.TypeChar:
			mode |= os.ModeDevice | os.ModeCharDevice
		}
		h.SetMode(mode)
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(f, body)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

func zstdOf(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(data, nil)
}

func do(t testing.TB, archive []byte, b unpack.Bounds) (dir string, r unpack.Result, err error) {
	t.Helper()
	room := t.TempDir()
	dir = filepath.Join(room, "files")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(room, "archive")
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err = unpack.Unpack(context.Background(), unpack.Request{Archive: file, Dir: dir, Bounds: b})
	return dir, r, err
}

// Whatever the archive is packed with, the files are the same, with their modes, links and
// times.
func TestArchives(t *testing.T) {
	list := []member{
		{name: "./top/", kind: tar.TypeDir, mode: 0o750},
		{name: "top/run.sh", kind: tar.TypeReg, mode: 0o755, body: "#!/bin/sh\n"},
		{name: "unnamed/dir/file", kind: tar.TypeReg, mode: 0o440, body: "x"},
		{name: "top/link", kind: tar.TypeSymlink, mode: 0o777, link: "../unnamed/dir/file"},
		{name: "with\nnewline", kind: tar.TypeReg, mode: 0o644},
	}
	plain := tarOf(t, list)
	for form, data := range map[string][]byte{"tar": plain, "tar.gz": gzipOf(plain), "tar.zst": zstdOf(t, plain), "zip": zipOf(t, list)} {
		t.Run(form, func(t *testing.T) {
			dir, r, err := do(t, data, unpack.Default)
			if err != nil {
				t.Fatal(err)
			}
			if r != (unpack.Result{Files: 3, Links: 1, Bytes: 11}) {
				t.Errorf("counted %+v", r)
			}
			for path, want := range map[string]os.FileMode{"top": os.ModeDir | 0o750, "top/run.sh": 0o755, "unnamed/dir": os.ModeDir | 0o755, "unnamed/dir/file": 0o440, "with\nnewline": 0o644} {
				info, err := os.Lstat(filepath.Join(dir, path))
				if err != nil || info.Mode() != want {
					t.Errorf("%q is %v, want %v: %v", path, info, want, err)
				} else if info.Mode().IsRegular() && !info.ModTime().Equal(stamp) {
					t.Errorf("%q is of %v", path, info.ModTime())
				}
			}
			if to, err := os.Readlink(filepath.Join(dir, "top/link")); err != nil || to != "../unnamed/dir/file" {
				t.Errorf("the link leads to %q: %v", to, err)
			}
		})
	}
	dir, _, err := do(t, tarOf(t, []member{{name: "a", kind: tar.TypeReg, mode: 0o4755, body: "same"}, {name: "d/b", kind: tar.TypeLink, link: "a"}}), unpack.Default)
	if err != nil {
		t.Fatal(err)
	}
	one, err1 := os.Stat(filepath.Join(dir, "a"))
	two, err2 := os.Stat(filepath.Join(dir, "d/b"))
	if err1 != nil || err2 != nil || !os.SameFile(one, two) || one.Mode() != 0o755 {
		t.Errorf("a hard link or a set-id bit: %v %v %v %v", one, two, err1, err2)
	}
}

// An archive that is up to something is refused as a whole, by name, and nothing is
// written outside.
func TestHostileArchives(t *testing.T) {
	reg := func(name string) member { return member{name: name, kind: tar.TypeReg, mode: 0o644, body: "evil"} }
	sym := func(name, to string) member { return member{name: name, kind: tar.TypeSymlink, link: to} }
	for name, tc := range map[string]struct {
		list []member
		want string
	}{
		"absolute":           {[]member{reg("/etc/passwd")}, "absolute"},
		"climbs":             {[]member{reg("../outside")}, "leads out"},
		"climbs later":       {[]member{reg("a/../../outside")}, "leads out"},
		"empty part":         {[]member{reg("a//b")}, "not a clean"},
		"long name":          {[]member{reg(strings.Repeat("n", 256))}, "not a clean"},
		"absolute link":      {[]member{sym("l", "/etc/passwd")}, "absolute path"},
		"link out":           {[]member{sym("d/l", "../../x")}, "leads out"},
		"link out by a link": {[]member{sym("d", "."), sym("e", "d/..")}, "leads out"},
		"through a link":     {[]member{sym("d", "."), reg("d/x")}, "no directory"},
		"through a file":     {[]member{reg("d"), reg("d/x")}, "no directory"},
		"twice":              {[]member{reg("a"), reg("a")}, "twice"},
		"file over link":     {[]member{sym("a", "b"), reg("a")}, "twice"},
		"device":             {[]member{{name: "null", kind: tar.TypeChar}}, "neither a file"},
		"conversations":      {[]member{reg(".agent_data/codex/auth.json")}, "conversations"},
		"deep":               {[]member{reg(strings.Repeat("d/", workspace.MaxNesting+1) + "x")}, "deep"},
	} {
		for form, data := range map[string][]byte{"tar": tarOf(t, tc.list), "zip": zipOf(t, tc.list)} {
			dir, _, err := do(t, data, unpack.Default)
			if thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s in a %s: %v, want %q", name, form, err, tc.want)
			}
			if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 2 {
				t.Errorf("%s in a %s wrote outside: %v %v", name, form, left, err)
			}
		}
	}
	only := map[string][]byte{
		"fifo":             tarOf(t, []member{{name: "f", kind: tar.TypeFifo}}),
		"hard link out":    tarOf(t, []member{{name: "p", kind: tar.TypeLink, link: "/etc/passwd"}}),
		"hard link to one": tarOf(t, []member{sym("l", "x"), {name: "p", kind: tar.TypeLink, link: "l"}}),
		"backslash":        zipOf(t, []member{reg(`..\outside`)}),
		"nothing":          {},
		"text":             []byte("hello, this is no archive at all"),
		"half a tar":       tarOf(t, []member{{name: "a", kind: tar.TypeReg, body: strings.Repeat("x", 5000)}})[:1024],
		"half a zip":       zipOf(t, []member{reg("a")})[:20],
		"half a gzip":      gzipOf(tarOf(t, []member{reg("a")}))[:20],
	}
	for name, data := range only {
		if _, _, err := do(t, data, unpack.Default); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBounds(t *testing.T) {
	zeros := strings.Repeat("\x00", 1<<20)
	bomb := make([]member, 80)
	for i := range bomb {
		bomb[i] = member{name: fmt.Sprint("z", i), kind: tar.TypeReg, mode: 0o644, body: zeros}
	}
	for name, tc := range map[string]struct {
		data   []byte
		bounds unpack.Bounds
		want   string
	}{
		"ratio":   {zstdOf(t, tarOf(t, bomb)), unpack.Default, "200 times as large"},
		"bytes":   {zipOf(t, bomb[:3]), unpack.Bounds{Bytes: 2 << 20, Entries: 100, Ratio: 1 << 20}, "more than 2 MiB"},
		"entries": {zipOf(t, bomb[:3]), unpack.Bounds{Bytes: 1 << 30, Entries: 2, Ratio: 1 << 20}, "more than 2 names"},
	} {
		if _, _, err := do(t, tc.data, tc.bounds); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	list := []member{{name: "d/", kind: tar.TypeDir, mode: 0o755}, {name: "d/f", kind: tar.TypeReg, mode: 0o644, body: "x"}, {name: "l", kind: tar.TypeSymlink, link: "d/f"}}
	f.Add(tarOf(f, list))
	f.Add(zipOf(f, list))
	f.Add(gzipOf(tarOf(f, list)))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir, _, err := do(t, data, unpack.Bounds{Bytes: 1 << 20, Entries: 100, Ratio: 100})
		if left, rerr := os.ReadDir(filepath.Dir(dir)); rerr != nil || len(left) != 2 {
			t.Fatalf("wrote outside: %v %v %v", left, rerr, err)
		}
	})
}
