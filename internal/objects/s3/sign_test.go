package s3

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The presigned GET that Amazon's documentation of the signature works out.
func TestLinkIsSignedAsDocumented(t *testing.T) {
	s := signer{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1"}
	u := &url.URL{Scheme: "https", Host: "examplebucket.s3.amazonaws.com", Path: "/test.txt"}
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	const want = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
	if got := s.link(http.MethodGet, u, nil, at, 24*time.Hour); !strings.HasSuffix(got, "&X-Amz-Signature="+want) {
		t.Errorf("signed %s", got)
	}
	if got := s.link(http.MethodPut, u, nil, at, 24*time.Hour); strings.HasSuffix(got, want) {
		t.Error("the method is not signed")
	}
}

func TestEscape(t *testing.T) {
	if got := escape("a b/ü~+\n", true); got != "a%20b/%C3%BC~%2B%0A" {
		t.Errorf("path %s", got)
	}
	if got := escape("a/b", false); got != "a%2Fb" {
		t.Errorf("query %s", got)
	}
}
