package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/unguarded"
)

// readBody reads the JSON of a route that decodes it itself, and refuses what the
// other routes refuse; nil: there is no body.
func readBody(r *http.Request) ([]byte, error) {
	if given := r.Header.Get("Content-Type"); given != "" && !unguarded.Build { // pages of other sites send text without asking
		media, _, err := mime.ParseMediaType(given)
		if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
			return nil, thole.Errorf(thole.CodeInvalid, "%w", errMedia).WithHint(jsonHint)
		}
	}
	data, err := io.ReadAll(r.Body)
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, thole.Errorf(thole.CodeInvalid, "%w", err)
	case err != nil:
		return nil, thole.Errorf(thole.CodeInvalid, "the body broke off: %w", errMalformed)
	case len(data) == 0:
		return nil, nil
	}
	return data, wellFormed(data)
}

func wellFormed(data []byte) error {
	var raw json.RawMessage
	if err := strictjson.Unmarshal(data, &raw); err != nil {
		return thole.Errorf(thole.CodeInvalid, "%w: %w", errMalformed, err)
	}
	return nil
}

// decodeBody reads a body into v, which stays as it is where there is none.
func decodeBody(r *http.Request, what string, v any) error {
	data, err := readBody(r)
	if err != nil || data == nil {
		return err
	}
	if err := strictjson.Unmarshal(data, v); err != nil {
		return thole.Errorf(thole.CodeInvalid, "the body is not the JSON of %s: %w", what, err)
	}
	return nil
}
