package thole_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
)

// Whatever a sender calls a file, its name is one visible name that stays where it is put.
func TestFileNamesAreMadeSafe(t *testing.T) {
	for name, want := range map[string]string{
		"report.pdf":                      "report.pdf",
		"../../etc/passwd":                "passwd",
		`C:\Users\me\notes.txt`:           "notes.txt",
		".git/config":                     "config",
		".gitignore":                      "gitignore",
		"..":                              "file",
		"/":                               "file",
		"":                                "file",
		"a\x00b\nc":                       "a_b c",
		"evil\u202Etxt.exe":               "evil_txt.exe",
		"名前.csv":                          "名前.csv",
		" x. ":                            "x",
		strings.Repeat("a", 255) + ".txt": strings.Repeat("a", 116) + ".txt",
		"bad\xff":                         "bad_",
	} {
		if got := thole.FileName(name); got != want {
			t.Errorf("%q is called %q, want %q", name, got, want)
		}
	}
}

func FuzzFileName(f *testing.F) {
	f.Add("../a")
	f.Fuzz(func(t *testing.T, name string) {
		got := thole.FileName(name)
		if got == "" || len(got) > 140 || got[0] == '.' || strings.ContainsAny(got, "/\\\x00\n") || !filepath.IsLocal(got) || filepath.Base(got) != got {
			t.Errorf("%q is called %q", name, got)
		}
		if again := thole.FileName(got); again != got {
			t.Errorf("%q is called %q, then %q", name, got, again)
		}
	})
}

func TestFilesHaveTheirContentAndAnEnd(t *testing.T) {
	media, data, err := thole.File("a.bin", "text/plain; charset=utf-8", []byte("hello")).Content()
	if err != nil || media != "text/plain" || string(data) != "hello" {
		t.Errorf("%q, %q, %v", media, data, err)
	}
	if _, _, err := thole.File("a", "x/y", bytes.Repeat([]byte{1}, thole.MaxFile)).Content(); err != nil {
		t.Error("the largest file:", err)
	}
	for _, in := range []thole.Input{
		thole.File("a", "x/y", bytes.Repeat([]byte{1}, thole.MaxFile+1)),
		{Type: thole.InputFile, Name: "a", URL: "data:x/y,plain"}, {Type: thole.InputFile, Name: "a", URL: "data:x/y;base64,%%"},
		{Type: thole.InputFile, Name: "a", URL: "file:///etc/passwd"}, {Type: thole.InputFile, Name: "a"},
	} {
		if _, _, err := in.Content(); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%.40s: %v", in.URL, err)
		}
	}
}
