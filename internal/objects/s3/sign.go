package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Version 4 of Amazon's request signature: a chain of HMACs over one canonical
// spelling of method, path, query, headers and payload.
const (
	algorithm = "AWS4-HMAC-SHA256"
	// unsigned leaves the payload out of the signature: it is streamed, and what
	// must not change names its checksum in a signed header.
	unsigned   = "UNSIGNED-PAYLOAD"
	stampStyle = "20060102T150405Z"
)

type signer struct{ access, secret, region string }

// header signs a request that we send ourselves.
func (s signer) header(r *http.Request, now time.Time) {
	stamp := now.UTC().Format(stampStyle)
	r.Header.Set("X-Amz-Date", stamp)
	r.Header.Set("X-Amz-Content-Sha256", unsigned)
	names, signature := s.signature(r.Method, r.URL, r.Header, stamp)
	r.Header.Set("Authorization", algorithm+" Credential="+s.access+"/"+s.scope(stamp)+", SignedHeaders="+names+", Signature="+signature)
}

// link signs a request that somebody else will send within ttl, with exactly
// these headers.
func (s signer) link(method string, u *url.URL, headers http.Header, now time.Time, ttl time.Duration) string {
	stamp := now.UTC().Format(stampStyle)
	q := u.Query()
	q.Set("X-Amz-Algorithm", algorithm)
	q.Set("X-Amz-Credential", s.access+"/"+s.scope(stamp))
	q.Set("X-Amz-Date", stamp)
	q.Set("X-Amz-Expires", strconv.Itoa(int(ttl.Seconds())))
	names, _ := canonicalHeaders(u.Host, headers)
	q.Set("X-Amz-SignedHeaders", names)
	signed := *u
	signed.RawQuery = canonicalQuery(q)
	_, signature := s.signature(method, &signed, headers, stamp)
	signed.RawQuery += "&X-Amz-Signature=" + signature
	return signed.String()
}

func (s signer) scope(stamp string) string { return stamp[:8] + "/" + s.region + "/s3/aws4_request" }

func (s signer) signature(method string, u *url.URL, headers http.Header, stamp string) (names, signature string) {
	names, lines := canonicalHeaders(u.Host, headers)
	request := strings.Join([]string{method, u.EscapedPath(), canonicalQuery(u.Query()), lines, names, unsigned}, "\n")
	sum := sha256.Sum256([]byte(request))
	text := strings.Join([]string{algorithm, stamp, s.scope(stamp), hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + s.secret)
	for _, part := range []string{stamp[:8], s.region, "s3", "aws4_request", text} {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	return names, hex.EncodeToString(key)
}

// canonicalHeaders returns the names of the signed headers and their lines: the
// host and everything of Amazon's.
func canonicalHeaders(host string, headers http.Header) (names, lines string) {
	all := []string{"host"}
	for name := range headers {
		if low := strings.ToLower(name); strings.HasPrefix(low, "x-amz-") {
			all = append(all, low)
		}
	}
	slices.Sort(all)
	var b strings.Builder
	for _, name := range all {
		value := host
		if name != "host" {
			value = strings.TrimSpace(headers.Get(name))
		}
		b.WriteString(name + ":" + value + "\n")
	}
	return strings.Join(all, ";"), b.String()
}

func canonicalQuery(q url.Values) string {
	var parts []string
	for name, values := range q {
		for _, v := range values {
			parts = append(parts, escape(name, false)+"="+escape(v, false))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "&")
}

// escape spells a text as the signature demands: every byte but the unreserved
// ones in hexadecimal, the slashes of a path kept.
func escape(text string, path bool) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0, path && c == '/':
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}
