package s3

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/minio/minio-go/v7"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// BeginParts implements objects.Parts.
func (s *Store) BeginParts(ctx context.Context, key string) (string, error) {
	if err := objects.CheckKey(key); err != nil {
		return "", err
	}
	upload, err := s.core.NewMultipartUpload(ctx, s.bucket, key, minio.PutObjectOptions{UserMetadata: map[string]string{"X-Amz-Checksum-Algorithm": "SHA256"}})
	if err != nil {
		return "", failed("begin upload", key, err)
	}
	if upload == "" {
		return "", thole.Errorf(thole.CodeUnavailable, "begin upload: the server named none")
	}
	return upload, nil
}

// SignPart implements objects.Parts.
func (s *Store) SignPart(ctx context.Context, key, upload string, number int, _ int64, sum objects.Sum, ttl time.Duration) (objects.Link, error) {
	return s.sign(ctx, http.MethodPut, key, url.Values{"partNumber": {strconv.Itoa(number)}, "uploadId": {upload}}, checksum(sum), ttl)
}

// EndParts implements objects.Parts.
func (s *Store) EndParts(ctx context.Context, key, upload string, parts []objects.Part) error {
	done := make([]minio.CompletePart, len(parts))
	for i, p := range parts {
		if p.Number != i+1 || i < len(parts)-1 && p.Size != objects.PartSize {
			return thole.Errorf(thole.CodeInvalid, "part %d is missing or short", i+1)
		}
		done[i] = minio.CompletePart{PartNumber: p.Number, ETag: p.ETag, ChecksumSHA256: encode(p.Sum)}
	}
	if _, err := s.core.CompleteMultipartUpload(ctx, s.bucket, key, upload, done, minio.PutObjectOptions{}); err != nil {
		return failed("end upload", key, err)
	}
	return nil
}

// AbortParts implements objects.Parts.
func (s *Store) AbortParts(ctx context.Context, key, upload string) error {
	return ignoreNotFound("abort upload", key, s.core.AbortMultipartUpload(ctx, s.bucket, key, upload))
}
