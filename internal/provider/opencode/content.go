package opencode

import (
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
)

// maxImage is the largest image the model service takes.
const maxImage = 10 << 20

// partsOf makes the parts of a prompt.
func partsOf(dir string, input []thole.Input) ([]any, error) {
	var out []any
	for _, in := range input {
		switch in.Type {
		case "text":
			out = append(out, map[string]any{"type": "text", "text": in.Text})
		case "image":
			mime, data, err := image(dir, in.URL)
			if err != nil {
				return nil, err
			}
			out = append(out, map[string]any{"type": "file", "mime": mime, "filename": "image", "url": "data:" + mime + ";base64," + data})
		default:
			return nil, thole.Errorf(thole.CodeInvalid, "opencode: input of type %q is not supported", in.Type)
		}
	}
	if len(out) == 0 {
		return nil, thole.Errorf(thole.CodeInvalid, "opencode: empty input")
	}
	return out, nil
}

// image reads a data URL or a file of the workspace.
func image(dir, url string) (mime, data string, err error) {
	if rest, ok := strings.CutPrefix(url, "data:"); ok {
		mime, data, ok = strings.Cut(rest, ";base64,")
		if !ok {
			return "", "", thole.Errorf(thole.CodeInvalid, "opencode: an image's data URL must be base64")
		}
		return mime, data, nil
	}
	if filepath.IsAbs(url) {
		if url, err = filepath.Rel(dir, url); err != nil {
			return "", "", thole.Errorf(thole.CodeInvalid, "opencode: image outside the workspace: %w", err)
		}
	}
	f, err := os.OpenInRoot(dir, url)
	if err != nil {
		return "", "", thole.Errorf(thole.CodeInvalid, "opencode: open image: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxImage+1))
	if err != nil {
		return "", "", thole.Errorf(thole.CodeInvalid, "opencode: read image: %w", err)
	}
	if len(raw) > maxImage {
		return "", "", thole.Errorf(thole.CodeInvalid, "opencode: image %s is larger than 10 MB", url)
	}
	return http.DetectContentType(raw), base64.StdEncoding.EncodeToString(raw), nil
}
