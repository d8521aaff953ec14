package exec

import (
	"errors"
	"path"
	"strings"
	"testing"
)

func TestParseURI(t *testing.T) {
	for _, c := range []struct{ in, path, err string }{
		{"file:///a/b", "/a/b", ""},
		{"file:/a/b", "/a/b", ""},
		{"FILE://localhost/a/b", "/a/b", ""},
		{"file://LOCALHOST/a", "/a", ""},
		{"file:///", "/", ""},
		{"file:", "/", ""},
		{" file:///a\t/b\n", "/a/b", ""},
		{"file:///a/../../b", "/b", ""},
		{"file:///a/%2e%2E/b", "/b", ""},
		{"file:///a/./b/.", "/a/b", ""},
		{"file:///a//b.txt/", "/a/b.txt", ""},
		{"file:////", "/", ""},
		{`file:\\\a\b`, "/a/b", ""},
		{"file:///sp%20ace%23%3F%25.txt", "/sp ace#?%.txt", ""},
		{"file:///sp ace", "/sp ace", ""},
		{"file:///%zz%4", "/%zz%4", ""},
		{"file:///%ff%fe", "/\xff\xfe", ""},
		{"file:///a%2Fb", "/a/b", ""},
		{"file:///%00/bad/path/L0M6L3g", "/C:/x", ""},
		{"/etc/passwd", "", "relative URL"},
		{"", "", "relative URL"},
		{"relative", "", "relative URL"},
		{"http://x/y", "", "unsupported path URI scheme `http`"},
		{"file:///a?x=1", "", "query"},
		{"file:///a#f", "", "fragments"},
		{"file://u@h/a", "", "host"},
		{"file://h:80/a", "", "host"},
		{"file://[::1]:80/a", "", "host"},
		{"file://[::1/a", "", "host"},
		{"file://[zz]/a", "", "host"},
		{"file://[127.0.0.1]/a", "", "host"},
		{"file:///a%00b", "", "invalid on 'linux'"},
		{"file:///%00/bad/path/!!", "", "invalid on"},
		{"file:///%00/bad/path/cmVs", "", "invalid on"},
	} {
		got, err := ParseURI(c.in)
		switch {
		case c.err == "" && (err != nil || got != c.path):
			t.Errorf("ParseURI(%q) = %q, %v; want %q", c.in, got, err, c.path)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("ParseURI(%q) = %q, %v; want error with %q", c.in, got, err, c.err)
		case errors.Is(err, ErrForeignPath):
			t.Errorf("ParseURI(%q) is foreign, want malformed", c.in)
		}
	}
	for _, in := range []string{"file://host/a", "file://[::1]/x", "file:///C:/x", "file:///c|/x", "file://C:/x"} {
		if _, err := ParseURI(in); !errors.Is(err, ErrForeignPath) || !strings.HasPrefix(err.Error(), "'"+in+"' is invalid on 'linux'") {
			t.Errorf("ParseURI(%q): %v; want foreign", in, err)
		}
	}
}

func FuzzURI(f *testing.F) {
	for _, s := range []string{"file:///a/../b", "file:///%00/bad/path/L0M6L3g", "/C:/x", "/a/./b", "file://h/x", "/\xff?#%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := ParseURI(s); err == nil {
			if !strings.HasPrefix(p, "/") || strings.IndexByte(p, 0) >= 0 {
				t.Fatalf("ParseURI(%q) = %q", s, p)
			}
		}
		if strings.HasPrefix(s, "/") && strings.IndexByte(s, 0) < 0 {
			back, err := ParseURI(FormatURI(s))
			want := s
			if !needsOpaque(s) { // doubled and trailing slashes say nothing
				want = path.Clean(s)
			}
			if err != nil || back != want {
				t.Fatalf("round trip of %q: %q, %v", s, back, err)
			}
		}
	})
}
