package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"net/http"
	"net/url"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// BeginParts implements objects.Parts.
func (s *Store) BeginParts(ctx context.Context, key string) (string, error) {
	if err := objects.CheckKey(key); err != nil {
		return "", err
	}
	headers := map[string]string{"Content-Type": "application/octet-stream", "X-Amz-Checksum-Algorithm": "SHA256"}
	var begun struct{ UploadId string } //nolint:revive // the server's spelling
	if err := s.ask(ctx, call{method: http.MethodPost, key: key, query: url.Values{"uploads": {""}}, headers: headers}, &begun); err != nil {
		return "", failed("begin upload", key, err)
	}
	if begun.UploadId == "" {
		return "", thole.Errorf(thole.CodeUnavailable, "begin upload: the server named none")
	}
	return begun.UploadId, nil
}

// SignPart implements objects.Parts.
func (s *Store) SignPart(_ context.Context, key, upload string, number int, _ int64, sum objects.Sum, ttl time.Duration) (objects.Link, error) {
	return s.sign(http.MethodPut, key, url.Values{"partNumber": {strconv.Itoa(number)}, "uploadId": {upload}}, checksum(sum), ttl)
}

// EndParts implements objects.Parts.
func (s *Store) EndParts(ctx context.Context, key, upload string, parts []objects.Part) error {
	type part struct {
		PartNumber     int
		ETag           string
		ChecksumSHA256 string
	}
	var done struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUpload"`
		Part    []part
	}
	for i, p := range parts {
		if p.Number != i+1 || i < len(parts)-1 && p.Size != objects.PartSize {
			return thole.Errorf(thole.CodeInvalid, "part %d is missing or short", i+1)
		}
		done.Part = append(done.Part, part{p.Number, p.ETag, encode(p.Sum)})
	}
	body, err := xml.Marshal(done)
	if err != nil {
		return thole.Errorf(thole.CodeInternal, "end upload: %w", err)
	}
	c := call{method: http.MethodPost, key: key, query: url.Values{"uploadId": {upload}}, body: bytes.NewReader(body), size: int64(len(body))}
	if err := s.ask(ctx, c, &struct{ ETag string }{}); err != nil {
		return failed("end upload", key, err)
	}
	return nil
}

// AbortParts implements objects.Parts.
func (s *Store) AbortParts(ctx context.Context, key, upload string) error {
	return gone("abort upload", key, s.ask(ctx, call{method: http.MethodDelete, key: key, query: url.Values{"uploadId": {upload}}}, nil))
}
