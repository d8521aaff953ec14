package s3

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// answered returns what the server said, the zero answer if it said nothing.
func answered(err error) minio.ErrorResponse {
	var answer minio.ErrorResponse
	_ = errors.As(err, &answer)
	return answer
}

// failed sorts a server's answer into our classes.
func failed(doing, key string, err error) error {
	var ours *thole.Error
	answer := answered(err)
	switch {
	case errors.As(err, &ours): // of our own reading or our own keys
		return err
	case answer.Code == minio.NoSuchBucket || answer.Code == minio.InvalidAccessKeyID || answer.Code == minio.SignatureDoesNotMatch || answer.StatusCode == http.StatusForbidden:
		return thole.Errorf(thole.CodeUnavailable, "%s: %w", doing, err).WithHint("check objects.bucket and where the keys come from (objects.credentials)")
	case answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w: %s", doing, objects.ErrNotFound, key)
	case answer.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return thole.Errorf(thole.CodeInvalid, "%s: %w", doing, err)
	}
	return thole.Errorf(thole.CodeUnavailable, "%s: %w", doing, err)
}

// ignoreNotFound treats a missing object as already deleted.
func ignoreNotFound(doing, key string, err error) error {
	if err == nil {
		return nil
	}
	if err := failed(doing, key, err); !errors.Is(err, objects.ErrNotFound) {
		return err
	}
	return nil
}
