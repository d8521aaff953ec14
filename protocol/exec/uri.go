package exec

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// ErrForeignPath marks a well-formed path URI that names no path on this kind of
// system: it has a host or a drive letter. Most calls answer it with another
// code than a malformed one.
var ErrForeignPath = errors.New("path is foreign to this system")

const badPathPrefix = "/%00/bad/path/"

// ParseURI turns a file: URI into an absolute native path. It follows the WHATWG
// URL rules where they matter: dot segments go lexically, also when encoded;
// backslashes are slashes; tabs and line breaks are dropped; file:/x, file:///x
// and file://localhost/x are equal. Native paths are refused: a caller that
// forgets to convert must not work by accident.
func ParseURI(uri string) (string, error) {
	s := strings.Trim(uri, controlsAndSpace)
	if strings.ContainsAny(s, "\t\n\r") {
		s = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(s)
	}
	scheme, rest, ok := cutScheme(s)
	if !ok {
		return "", errors.New("invalid URI: relative URL without a base")
	}
	if !strings.EqualFold(scheme, "file") {
		return "", fmt.Errorf("unsupported path URI scheme `%s`", strings.ToLower(scheme))
	}
	if strings.ContainsRune(rest, '#') {
		return "", errors.New("fragments are not allowed in path URIs")
	}
	if strings.ContainsRune(rest, '?') {
		return "", errors.New("query parameters are not allowed in path URIs")
	}
	rest = strings.ReplaceAll(rest, "\\", "/")
	host := ""
	if strings.HasPrefix(rest, "//") {
		host, rest, _ = strings.Cut(rest[2:], "/")
		if isDrive(host) {
			return "", foreign(uri)
		}
		if in, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(in, "]") {
			if ip, err := netip.ParseAddr(strings.TrimSuffix(in, "]")); err == nil && ip.Is6() && ip.Zone() == "" {
				return "", foreign(uri)
			}
		}
		if strings.ContainsAny(host, "@:[]<>^|% ") {
			return "", errors.New("invalid URI: invalid host")
		}
		if strings.EqualFold(host, "localhost") {
			host = ""
		}
	}
	if p, ok := strings.CutPrefix("/"+strings.TrimPrefix(rest, "/"), badPathPrefix); ok && host == "" {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(p)
		if err != nil || len(raw) == 0 || raw[0] != '/' || strings.IndexByte(string(raw), 0) >= 0 {
			return "", fmt.Errorf("'%s' is invalid on 'linux'", uri)
		}
		return string(raw), nil
	}
	segs := normalise(rest)
	if host != "" || len(segs) > 0 && isDrive(segs[0]) {
		return "", foreign(uri)
	}
	var b strings.Builder
	for _, seg := range segs {
		if seg == "" { // a doubled or trailing slash names nothing
			continue
		}
		b.WriteByte('/')
		b.WriteString(unescape(seg))
	}
	if b.Len() == 0 {
		return "/", nil
	}
	path := b.String()
	if strings.IndexByte(path, 0) >= 0 {
		return "", fmt.Errorf("'%s' is invalid on 'linux'", uri)
	}
	return path, nil
}

// FormatURI turns an absolute native path into its file: URI. Paths that the URI
// form would change (a first name that looks like a drive letter, dot segments)
// get the opaque form; ParseURI gives them back.
func FormatURI(path string) string {
	if needsOpaque(path) {
		return "file://" + badPathPrefix + base64.RawURLEncoding.EncodeToString([]byte(path))
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(path) + 16)
	b.WriteString("file://")
	for i := range len(path) {
		c := path[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>?`{}%\\^", c) >= 0 {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

const controlsAndSpace = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f" +
	"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f "

func foreign(uri string) error {
	return fmt.Errorf("'%s' is invalid on 'linux'%w", uri, silent{ErrForeignPath})
}

// silent wraps an error for errors.Is without adding to the text.
type silent struct{ err error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.err }

func cutScheme(s string) (scheme, rest string, ok bool) {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			return s[:i], s[i+1:], true
		default:
			return "", "", false
		}
	}
	return "", "", false
}

// normalise splits a URI path and resolves dot segments. Empty segments stay,
// as WHATWG wants: dot segments count them.
func normalise(p string) []string {
	p = strings.TrimPrefix(p, "/")
	if p == "" {
		return nil
	}
	var out []string
	parts := strings.Split(p, "/")
	for i, seg := range parts {
		last := i == len(parts)-1
		switch strings.ReplaceAll(strings.ToLower(seg), "%2e", ".") {
		case ".":
			if last {
				out = append(out, "")
			}
		case "..":
			if len(out) > 0 && !(len(out) == 1 && isDrive(out[0])) {
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, seg)
		}
	}
	return out
}

func isDrive(seg string) bool {
	return len(seg) == 2 && (seg[1] == ':' || seg[1] == '|') &&
		('a' <= seg[0]|0x20 && seg[0]|0x20 <= 'z')
}

// unescape decodes percent sequences; broken ones stay as they are.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, ok1 := unhex(s[i+1])
			lo, ok2 := unhex(s[i+2])
			if ok1 && ok2 {
				b = append(b, hi<<4|lo)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

func needsOpaque(path string) bool {
	if !strings.HasPrefix(path, "/") {
		return true
	}
	// Two leading slashes would read back as one.
	for i, seg := range strings.Split(path[1:], "/") {
		if i == 0 && seg == "" && len(path) > 1 || seg == "." || seg == ".." || i == 0 && isDrive(seg) {
			return true
		}
	}
	return false
}
