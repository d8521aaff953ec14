package s3

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"time"

	"github.com/tholehq/thole/internal/objects"
)

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

// sign links to one method on one key; the headers are part of the signature.
func (s *Store) sign(ctx context.Context, method, key string, query url.Values, headers map[string]string, ttl time.Duration) (objects.Link, error) {
	if err := objects.CheckKey(key); err != nil {
		return objects.Link{}, err
	}
	signed := http.Header{}
	for k, v := range headers {
		signed.Set(k, v)
	}
	u, err := s.core.PresignHeader(ctx, method, s.bucket, key, ttl, query, signed)
	if err != nil {
		return objects.Link{}, failed("sign a link", key, err)
	}
	return objects.Link{URL: u.String(), Headers: headers}, nil
}
