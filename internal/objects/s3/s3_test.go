package s3_test

import (
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects/objectstest"
	"github.com/tholehq/thole/internal/objects/s3"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func open(t *testing.T, change ...func(*s3.Config)) *s3.Store {
	t.Helper()
	b := lab.S3(t)
	cfg := s3.Config{Endpoint: "http://" + b.Endpoint, Region: b.Region, Bucket: b.Bucket, AccessKey: b.AccessKey, SecretKey: b.SecretKey}
	for _, c := range change {
		c(&cfg)
	}
	s, err := s3.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestContract(t *testing.T) { objectstest.Run(t, open(t)) }

func TestWhatIsWrongIsSaid(t *testing.T) {
	if err := open(t).Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := open(t, func(c *s3.Config) { c.Bucket = "not-there" }).Check(t.Context())
	if thole.CodeOf(err) != thole.CodeNotFound || thole.HintOf(err) == "" {
		t.Errorf("a missing bucket: %v", err)
	}
	err = open(t, func(c *s3.Config) { c.SecretKey = "wrong" }).Check(t.Context())
	if thole.CodeOf(err) != thole.CodeUnavailable || thole.HintOf(err) == "" {
		t.Errorf("a wrong key: %v", err)
	}
	for _, endpoint := range []string{"", "host:9000", "ftp://host", "http://host/path"} {
		if _, err := s3.Open(s3.Config{Endpoint: endpoint, Bucket: "b"}); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("endpoint %q: %v", endpoint, err)
		}
	}
}
