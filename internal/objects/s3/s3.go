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
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
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
	core      minio.Core
	bucket    string
	transport *http.Transport
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
	core, err := minio.NewCore(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(cfg.AccessKey, cfg.SecretKey, ""), Secure: u.Scheme == "https", Region: region, Transport: transport,
	})
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "objects.endpoint: %w", err)
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
	ok, err := s.core.BucketExists(ctx, s.bucket)
	if err != nil {
		return failed("reach the object store", s.bucket, err)
	}
	if !ok {
		return thole.Errorf(thole.CodeNotFound, "the object store has no bucket %q", s.bucket).WithHint("make it, or set objects.bucket")
	}
	return nil
}

// failed sorts a server's answer into our classes.
func failed(doing, key string, err error) error {
	switch r := minio.ToErrorResponse(err); {
	case r.Code == "NoSuchKey" || r.Code == "NoSuchUpload" || r.StatusCode == http.StatusNotFound && r.Code != "NoSuchBucket":
		return fmt.Errorf("%s: %w: %s", doing, objects.ErrNotFound, key)
	case r.Code == "NoSuchBucket" || r.Code == "AccessDenied" || r.Code == "InvalidAccessKeyId" || r.Code == "SignatureDoesNotMatch":
		return thole.Errorf(thole.CodeUnavailable, "%s: %w", doing, err).WithHint("check objects.bucket and the keys in the configuration")
	case r.Code == "InvalidRange":
		return thole.Errorf(thole.CodeInvalid, "%s: %w", doing, err)
	}
	return thole.Errorf(thole.CodeUnavailable, "%s: %w", doing, err)
}

// Put implements objects.Store.
func (s *Store) Put(ctx context.Context, key string, body io.Reader, size int64) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	// One more byte than announced would be silently left out.
	exact := &exactReader{r: body, left: size}
	_, err := s.core.Client.PutObject(ctx, s.bucket, key, exact, size, minio.PutObjectOptions{ContentType: "application/octet-stream"})
	if exact.wrong {
		return thole.Errorf(thole.CodeInvalid, "object does not have the %d bytes announced", size)
	}
	if err != nil {
		return failed("store object", key, err)
	}
	if n, _ := io.ReadFull(body, make([]byte, 1)); n > 0 {
		_ = s.Delete(context.WithoutCancel(ctx), key)
		return thole.Errorf(thole.CodeInvalid, "object has more than the %d bytes announced", size)
	}
	return nil
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
	var opts minio.GetObjectOptions
	if off != 0 || n > 0 {
		end := int64(0)
		if n > 0 {
			end = off + n - 1
		}
		if err := opts.SetRange(off, end); err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "read object: %w", err)
		}
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
	return objects.Info{Key: key, Size: info.Size, ETag: info.ETag, Modified: info.LastModified.UTC()}, nil
}

// List implements objects.Store.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]objects.Info, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var out []objects.Info
	for o := range s.core.Client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true, StartAfter: after, MaxKeys: min(limit, 1000)}) {
		if o.Err != nil {
			return nil, failed("list objects", prefix, o.Err)
		}
		out = append(out, objects.Info{Key: o.Key, Size: o.Size, ETag: o.ETag, Modified: o.LastModified.UTC()})
		if len(out) == limit {
			break
		}
	}
	return out, nil
}

// Delete implements objects.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := objects.CheckKey(key); err != nil {
		return err
	}
	if err := s.core.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{}); err != nil && minio.ToErrorResponse(err).Code != "NoSuchKey" {
		return failed("delete object", key, err)
	}
	return nil
}

// SignGet implements objects.Store.
func (s *Store) SignGet(ctx context.Context, key string, ttl time.Duration) (objects.Link, error) {
	return s.sign(ctx, http.MethodGet, key, nil, nil, ttl)
}

// SignPut implements objects.Store.
func (s *Store) SignPut(ctx context.Context, key string, _ int64, sum objects.Sum, ttl time.Duration) (objects.Link, error) {
	return s.sign(ctx, http.MethodPut, key, nil, checksum(sum), ttl)
}

func checksum(sum objects.Sum) map[string]string {
	return map[string]string{"X-Amz-Checksum-Sha256": encode(sum)}
}

func encode(sum objects.Sum) string { return base64.StdEncoding.EncodeToString(sum[:]) }

func (s *Store) sign(ctx context.Context, method, key string, query url.Values, headers map[string]string, ttl time.Duration) (objects.Link, error) {
	if err := objects.CheckKey(key); err != nil {
		return objects.Link{}, err
	}
	extra := http.Header{}
	for k, v := range headers {
		extra.Set(k, v)
	}
	u, err := s.core.PresignHeader(ctx, method, s.bucket, key, ttl, query, extra)
	if err != nil {
		return objects.Link{}, failed("sign link", key, err)
	}
	return objects.Link{URL: u.String(), Headers: headers}, nil
}

// BeginParts implements objects.Parts.
func (s *Store) BeginParts(ctx context.Context, key string) (string, error) {
	if err := objects.CheckKey(key); err != nil {
		return "", err
	}
	upload, err := s.core.NewMultipartUpload(ctx, s.bucket, key, minio.PutObjectOptions{
		ContentType: "application/octet-stream", UserMetadata: map[string]string{"X-Amz-Checksum-Algorithm": "SHA256"},
	})
	if err != nil {
		return "", failed("begin upload", key, err)
	}
	return upload, nil
}

// SignPart implements objects.Parts.
func (s *Store) SignPart(ctx context.Context, key, upload string, number int, _ int64, sum objects.Sum, ttl time.Duration) (objects.Link, error) {
	return s.sign(ctx, http.MethodPut, key, url.Values{"partNumber": {strconv.Itoa(number)}, "uploadId": {upload}}, checksum(sum), ttl)
}

// EndParts implements objects.Parts.
func (s *Store) EndParts(ctx context.Context, key, upload string, parts []objects.Part) error {
	var list []minio.CompletePart
	for i, p := range parts {
		if p.Number != i+1 || i < len(parts)-1 && p.Size != objects.PartSize {
			return thole.Errorf(thole.CodeInvalid, "part %d is missing or short", i+1)
		}
		list = append(list, minio.CompletePart{PartNumber: p.Number, ETag: p.ETag, ChecksumSHA256: encode(p.Sum)})
	}
	if _, err := s.core.CompleteMultipartUpload(ctx, s.bucket, key, upload, list, minio.PutObjectOptions{}); err != nil {
		return failed("end upload", key, err)
	}
	return nil
}

// AbortParts implements objects.Parts.
func (s *Store) AbortParts(ctx context.Context, key, upload string) error {
	if err := s.core.AbortMultipartUpload(ctx, s.bucket, key, upload); err != nil && minio.ToErrorResponse(err).Code != "NoSuchUpload" {
		return failed("abort upload", key, err)
	}
	return nil
}
