// Package s3 keeps objects in a bucket of an S3 server. Its links are presigned
// requests that name the checksum of what they permit to store, so the server
// refuses other bytes.
//
// It refuses to make buckets: which bucket there is, and who may read it, is the
// operator's decision.
package s3

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// Config names a bucket. Endpoint is a URL; a plain HTTP one is for loopback.
type Config struct {
	Endpoint  string
	Region    string
	Bucket    string
	AccessKey string
	SecretKey string
}

// Store implements objects.Store and objects.Parts.
type Store struct {
	endpoint *url.URL
	bucket   string
	signer   signer
	client   *http.Client
}

var (
	_ objects.Store = (*Store)(nil)
	_ objects.Parts = (*Store)(nil)
)

// Open makes a store; it asks the server nothing yet.
func Open(cfg Config) (*Store, error) {
	u, err := url.Parse(cfg.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" {
		return nil, thole.Errorf(thole.CodeInvalid, "objects.endpoint: %q is not a URL of a server", cfg.Endpoint).WithHint("for example https://s3.example.com")
	}
	if cfg.Bucket == "" {
		return nil, thole.Errorf(thole.CodeInvalid, "objects.bucket is not set")
	}
	region := cfg.Region
	if region == "" {
		region = "us-east-1"
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: time.Minute, DisableCompression: true,
	}
	return &Store{
		endpoint: &url.URL{Scheme: u.Scheme, Host: u.Host}, bucket: cfg.Bucket,
		signer: signer{cfg.AccessKey, cfg.SecretKey, region}, client: &http.Client{Transport: transport},
	}, nil
}

// Close drops idle connections.
func (s *Store) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Check asks the server for the bucket.
func (s *Store) Check(ctx context.Context) error {
	err := s.ask(ctx, call{method: http.MethodHead}, nil)
	if answer := (*answerError)(nil); errors.As(err, &answer) && answer.Status == http.StatusNotFound {
		return thole.Errorf(thole.CodeNotFound, "the object store has no bucket %q", s.bucket).WithHint("make it, or set objects.bucket")
	}
	if err != nil {
		return failed("reach the object store", s.bucket, err)
	}
	return nil
}

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, key string, body io.Reader, size int64) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	if size > maxPut {
		return thole.Errorf(thole.CodeInvalid, "object of %d bytes is too large to store in one piece", size)
	}
	exact := &exactReader{r: body, left: size}
	var source io.Reader = exact
	if seeker, ok := body.(io.ReadSeeker); ok {
		source = &rewinder{exact, seeker, size}
	}
	if size == 0 {
		source = nil
	}
	err := s.ask(ctx, call{method: http.MethodPut, key: key, body: source, size: size, headers: octets}, nil)
	if exact.wrong {
		return thole.Errorf(thole.CodeInvalid, "object does not have the %d bytes announced", size)
	}
	if err != nil {
		return failed("store object", key, err)
	}
	// One more byte than announced would be silently left out.
	if n, _ := io.ReadFull(body, make([]byte, 1)); n > 0 {
		_ = s.Delete(context.WithoutCancel(ctx), key)
		return thole.Errorf(thole.CodeInvalid, "object has more than the %d bytes announced", size)
	}
	return nil
}

// maxPut is the most that servers take in one request.
const maxPut = 5 << 30

var octets = map[string]string{"Content-Type": "application/octet-stream"}

// rewinder lets a body be sent again from its beginning.
type rewinder struct {
	*exactReader
	s    io.ReadSeeker
	size int64
}

func (r *rewinder) Seek(off int64, whence int) (int64, error) {
	r.left, r.wrong = r.size-off, false
	return r.s.Seek(off, whence)
}

// exactReader notices a body that ends early.
type exactReader struct {
	r     io.Reader
	left  int64
	wrong bool
}

func (e *exactReader) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.r.Read(p)
	e.left -= int64(n)
	if err == io.EOF && e.left > 0 {
		e.wrong = true
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// Get implements objects.Store.
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if err := objects.CheckKey(key); err != nil {
		return nil, err
	}
	if n == 0 {
		return http.NoBody, nil
	}
	c := call{method: http.MethodGet, key: key, headers: map[string]string{}}
	if n > 0 {
		c.headers["Range"] = fmt.Sprintf("bytes=%d-%d", off, off+n-1)
	} else if off > 0 {
		c.headers["Range"] = fmt.Sprintf("bytes=%d-", off)
	}
	resp, err := s.do(ctx, c)
	if err != nil {
		return nil, failed("read object", key, err)
	}
	if n > 0 && resp.ContentLength != n {
		resp.Body.Close()
		return nil, thole.Errorf(thole.CodeInvalid, "range %d+%d is outside the object", off, n)
	}
	return resp.Body, nil
}

// Stat implements objects.Store.
func (s *Store) Stat(ctx context.Context, key string) (objects.Info, error) {
	if err := objects.CheckKey(key); err != nil {
		return objects.Info{}, err
	}
	resp, err := s.do(ctx, call{method: http.MethodHead, key: key})
	if err != nil {
		return objects.Info{}, failed("look for object", key, err)
	}
	defer resp.Body.Close()
	modified, err := http.ParseTime(resp.Header.Get("Last-Modified"))
	if err != nil {
		return objects.Info{}, failed("look for object", key, err)
	}
	return objects.Info{Key: key, Size: resp.ContentLength, ETag: strings.Trim(resp.Header.Get("ETag"), `"`), Modified: modified.UTC()}, nil
}

// listing is one page of keys.
type listing struct {
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string
	Contents              []struct {
		Key, ETag    string
		Size         int64
		LastModified time.Time
	}
}

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, error) {
	var out []objects.Info
	for token := ""; ; {
		q := url.Values{
			"list-type": {"2"}, "prefix": {prefix}, "max-keys": {strconv.Itoa(min(limit-len(out), 1000))},
			"encoding-type": {"url"}, // XML cannot spell every byte of a key
		}
		if token != "" {
			q.Set("continuation-token", token)
		} else if after != "" {
			q.Set("start-after", after)
		}
		var page listing
		if err := s.ask(ctx, call{method: http.MethodGet, query: q}, &page); err != nil {
			return nil, failed("list objects", prefix, err)
		}
		for _, o := range page.Contents {
			key := o.Key
			if page.EncodingType == "url" {
				var err error
				if key, err = url.QueryUnescape(o.Key); err != nil {
					return nil, failed("list objects", prefix, err)
				}
			}
			out = append(out, objects.Info{Key: key, Size: o.Size, ETag: strings.Trim(o.ETag, `"`), Modified: o.LastModified.UTC()})
		}
		token = page.NextContinuationToken
		if len(out) >= limit || !page.IsTruncated || token == "" {
			return out, nil
		}
	}
}

// Delete implements objects.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	return gone("delete object", key, s.ask(ctx, call{method: http.MethodDelete, key: key}, nil))
}

// gone forgives the absence of what was to be removed.
func gone(doing, key string, err error) error {
	if err == nil {
		return nil
	}
	if err := failed(doing, key, err); !errors.Is(err, objects.ErrNotFound) {
		return err
	}
	return nil
}

// SignGet implements objects.Store.
func (s *Store) SignGet(_ context.Context, key string, ttl time.Duration) (objects.Link, error) {
	return s.sign(http.MethodGet, key, nil, nil, ttl)
}

// SignPut implements objects.Store.
func (s *Store) SignPut(_ context.Context, key string, _ int64, sum objects.Sum, ttl time.Duration) (objects.Link, error) {
	return s.sign(http.MethodPut, key, nil, checksum(sum), ttl)
}

func checksum(sum objects.Sum) map[string]string {
	return map[string]string{"X-Amz-Checksum-Sha256": encode(sum)}
}

func encode(sum objects.Sum) string { return base64.StdEncoding.EncodeToString(sum[:]) }

func (s *Store) sign(method, key string, query url.Values, headers map[string]string, ttl time.Duration) (objects.Link, error) {
	if err := objects.CheckKey(key); err != nil {
		return objects.Link{}, err
	}
	extra := http.Header{}
	for k, v := range headers {
		extra.Set(k, v)
	}
	return objects.Link{URL: s.signer.link(method, s.url(key, query), extra, time.Now(), ttl), Headers: headers}, nil
}
