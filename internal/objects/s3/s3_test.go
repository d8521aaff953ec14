package s3_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects/objectstest"
	"github.com/tholehq/thole/internal/objects/s3"
	"github.com/tholehq/thole/internal/testkit/lab"
)

func config(b lab.S3Bucket) s3.Config {
	return s3.Config{
		Endpoint: "http://" + b.Endpoint, Region: b.Region, Bucket: b.Bucket, Style: s3.StylePath,
		Keys: s3.Keys{Source: s3.SourceStatic, Access: b.AccessKey, Secret: b.SecretKey},
	}
}

func open(t *testing.T, change ...func(*s3.Config)) *s3.Store {
	t.Helper()
	cfg := config(lab.S3(t))
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

// The same contract with the bucket in the host's name, and with a region that
// only the server knows.
func TestContractByHost(t *testing.T) {
	b := lab.S3(t)
	_, port, err := net.SplitHostPort(b.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	var dialled []string
	over := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != b.Bucket+"."+lab.S3Domain+":"+port {
			dialled = append(dialled, address)
		}
		return new(net.Dialer).DialContext(ctx, network, b.Endpoint)
	}}
	cfg := config(b)
	cfg.Endpoint, cfg.Region, cfg.Style, cfg.Transport = "http://"+lab.S3Domain+":"+port, "", s3.StyleHost, over
	s, err := s3.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	objectstest.RunOver(t, s, over)
	if len(dialled) > 0 {
		t.Errorf("asked %q", dialled)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	if err := open(t).Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := open(t, func(c *s3.Config) { c.Bucket = "not-there" }).Check(t.Context())
	if thole.CodeOf(err) != thole.CodeNotFound || thole.HintOf(err) == "" {
		t.Errorf("a missing bucket: %v", err)
	}
	err = open(t, func(c *s3.Config) { c.Keys.Secret = "wrong" }).Check(t.Context())
	if thole.CodeOf(err) != thole.CodeUnavailable || thole.HintOf(err) == "" {
		t.Errorf("a wrong key: %v", err)
	}
	for _, endpoint := range []string{"", "host:9000", "ftp://host", "http://host/path"} {
		if _, err := s3.Open(s3.Config{Endpoint: endpoint, Bucket: "b"}); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("endpoint %q: %v", endpoint, err)
		}
	}
	for _, cfg := range []s3.Config{{Style: "tilde"}, {Keys: s3.Keys{Source: "hope"}}} {
		cfg.Endpoint, cfg.Bucket = "http://host", "b"
		if _, err := s3.Open(cfg); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
