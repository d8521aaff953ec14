package provider

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	thole "github.com/tholehq/thole"
)

// maxImage is the largest image that the model services take.
const maxImage = 10 << 20

// Blocks makes the content blocks of a message to a CLI that takes images as
// data; image makes the CLI's own block of one.
func Blocks(dir string, input []thole.Input, image func(mime, base64 string) any) ([]any, error) {
	var out []any
	for _, in := range input {
		switch in.Type {
		case "text", string(thole.TurnCommandCompact): // whose text is the command that CLIs know
			out = append(out, map[string]any{"type": "text", "text": in.Text})
		case "image":
			mime, data, err := readImage(dir, in.URL)
			if err != nil {
				return nil, err
			}
			out = append(out, image(mime, data))
		default:
			return nil, thole.Errorf(thole.CodeInvalid, "input of type %q is not supported", in.Type)
		}
	}
	if len(out) == 0 {
		return nil, thole.Errorf(thole.CodeInvalid, "the input is empty")
	}
	return out, nil
}

// readImage reads a data URL or a file of the workspace.
func readImage(dir, url string) (mime, data string, err error) {
	if rest, ok := strings.CutPrefix(url, "data:"); ok {
		mime, data, ok = strings.Cut(rest, ";base64,")
		if !ok {
			return "", "", thole.Errorf(thole.CodeInvalid, "an image's data URL must be base64")
		}
		return mime, data, nil
	}
	if filepath.IsAbs(url) {
		if url, err = filepath.Rel(dir, url); err != nil {
			return "", "", thole.Errorf(thole.CodeInvalid, "image outside the workspace: %w", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", "", err
	}
	defer root.Close()
	// An agent may have put a pipe there, for which one waits for ever.
	f, err := root.OpenFile(url, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", "", thole.Errorf(thole.CodeInvalid, "open image: %w", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", "", errors.Join(err, thole.Errorf(thole.CodeInvalid, "image %s is not a regular file", url))
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxImage+1))
	if err != nil {
		return "", "", thole.Errorf(thole.CodeInvalid, "read image: %w", err)
	}
	if len(raw) > maxImage {
		return "", "", thole.Errorf(thole.CodeInvalid, "image %s is larger than 10 MB", url)
	}
	return http.DetectContentType(raw), base64.StdEncoding.EncodeToString(raw), nil
}

// Relative is a path as clients show it: inside the workspace without its prefix.
func Relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
