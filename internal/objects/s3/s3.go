// Package s3 keeps objects in a bucket of an S3 server. Its links are presigned
// requests that name the checksum of what they permit to store, so the server
// refuses other bytes.
//
// It refuses to make buckets: which bucket there is, and who may read it, is the
// operator's decision. It refuses to ask without credentials.
package s3

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/minio/minio-go/v7"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// Config names a bucket and how it is reached.
type Config struct {
	Endpoint string // a URL; a plain HTTP one is for loopback
	Bucket   string
	Region   string // without one the server is asked, and believed when it says another
	Style    Style
	Keys     Keys

	// Transport, if not nil, carries the requests.
	Transport *http.Transport
}

// Style says where a request names the bucket.
type Style string

const (
	StyleAuto Style = "auto" // in the host at Amazon and its like, else in the path
	StylePath Style = "path" // https://host/bucket/key
	StyleHost Style = "host" // https://bucket.host/key
)

var lookups = map[Style]minio.BucketLookupType{
	"": minio.BucketLookupAuto, StyleAuto: minio.BucketLookupAuto, StylePath: minio.BucketLookupPath, StyleHost: minio.BucketLookupDNS,
}

// Store implements objects.Store and objects.Parts.
type Store struct {
	core      minio.Core
	bucket    string
	transport *http.Transport
}

var (
	_ objects.Store = (*Store)(nil)
	_ objects.Parts = (*Store)(nil)
)

// tries is how often a request is sent whose failure may pass by itself.
const tries = 4

// Open makes a store; it asks the server nothing yet.
func Open(cfg Config) (*Store, error) {
	u, err := url.Parse(cfg.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" {
		return nil, thole.Errorf(thole.CodeInvalid, "objects.endpoint: %q is not a URL of a server", cfg.Endpoint).WithHint("for example https://s3.example.com")
	}
	if cfg.Bucket == "" {
		return nil, thole.Errorf(thole.CodeInvalid, "objects.bucket is not set")
	}
	lookup, ok := lookups[cfg.Style]
	if !ok {
		return nil, thole.Errorf(thole.CodeInvalid, "objects.style: unknown style %q; use auto, path or host", cfg.Style)
	}
	transport := cfg.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: time.Minute, DisableCompression: true,
		}
	}
	keys, err := cfg.Keys.chain(cfg.Region)
	if err != nil {
		return nil, err
	}
	core, err := minio.NewCore(u.Host, &minio.Options{
		Creds: keys, Secure: u.Scheme == "https", Region: cfg.Region, BucketLookup: lookup, Transport: transport, MaxRetries: tries,
	})
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "open the object store: %w", err)
	}
	return &Store{core: *core, bucket: cfg.Bucket, transport: transport}, nil
}

// Close drops idle connections.
func (s *Store) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// Check asks the server for the bucket.
func (s *Store) Check(ctx context.Context) error {
	there, err := s.core.BucketExists(ctx, s.bucket)
	if err == nil && !there || answered(err).Code == minio.NoSuchBucket {
		return thole.Errorf(thole.CodeNotFound, "the object store has no bucket %q", s.bucket).WithHint("make it, or set objects.bucket")
	}
	if err != nil {
		return failed("reach the object store", s.bucket, err)
	}
	return nil
}

// Get implements objects.Store.
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	if err := objects.CheckKey(key); err != nil {
		return nil, err
	}
	if n == 0 {
		return http.NoBody, nil
	}
	var opts minio.GetObjectOptions
	var err error
	switch {
	case n > 0:
		err = opts.SetRange(off, off+n-1)
	case off > 0:
		err = opts.SetRange(off, 0)
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "range %d+%d: %w", off, n, err)
	}
	body, info, _, err := s.core.GetObject(ctx, s.bucket, key, opts)
	if err != nil {
		return nil, failed("read object", key, err)
	}
	if n > 0 && info.Size != n {
		body.Close()
		return nil, thole.Errorf(thole.CodeInvalid, "range %d+%d is outside the object", off, n)
	}
	return body, nil
}

// Stat implements objects.Store.
func (s *Store) Stat(ctx context.Context, key string) (objects.Info, error) {
	if err := objects.CheckKey(key); err != nil {
		return objects.Info{}, err
	}
	info, err := s.core.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return objects.Info{}, failed("look for object", key, err)
	}
	info.Key = key
	return described(info), nil
}

func described(o minio.ObjectInfo) objects.Info {
	return objects.Info{Key: o.Key, Size: o.Size, ETag: o.ETag, Modified: o.LastModified.UTC()}
}

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var out []objects.Info
	opts := minio.ListObjectsOptions{Prefix: prefix, Recursive: true, StartAfter: after, MaxKeys: min(limit, 1000)}
	for o := range s.core.ListObjectsIter(ctx, s.bucket, opts) {
		if o.Err != nil {
			return nil, failed("list objects", prefix, o.Err)
		}
		if out = append(out, described(o)); len(out) == limit {
			return out, nil
		}
	}
	// The library also ends quietly when its time is up; a short list would say
	// that there is no more.
	if err := ctx.Err(); err != nil {
		return nil, failed("list objects", prefix, err)
	}
	return out, nil
}

// Delete implements objects.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	return ignoreNotFound("delete object", key, s.core.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{}))
}
