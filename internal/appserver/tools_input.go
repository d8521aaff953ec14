package appserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// maxLocalImage is the largest image that the model services take.
const maxLocalImage = 10 << 20

const remoteImage = "remote image URLs are not supported; use an inline data URL instead"

// remote reports whether a URL leads over the network.
func remote(url string) bool {
	scheme, _, ok := strings.Cut(url, ":")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https"))
}

// inputs reads what a client says to a thread. Kinds that threads do not carry are sent as
// text or refused, never dropped.
func (s *Server) inputs(ctx context.Context, c *conn, id thole.ThreadID, in []app.UserInput) ([]thole.Input, error) {
	out := make([]thole.Input, 0, len(in))
	for _, p := range in {
		switch p.Type {
		case "text":
			out = append(out, thole.Input{Type: "text", Text: p.Text})
		case "image":
			url, err := imageURL(p)
			if err != nil {
				return nil, err
			}
			out = append(out, thole.Input{Type: "image", URL: url})
		case "localImage":
			if p.Path == "" {
				return nil, invalid("missing field `path`")
			}
			url, err := s.localImage(ctx, c, id, p.Path)
			if err != nil {
				return nil, err
			}
			out = append(out, thole.Input{Type: "image", URL: url})
		case thole.InputFile:
			if p.Name == "" {
				return nil, invalid("missing field `name`")
			}
			out = append(out, thole.Input{Type: thole.InputFile, Name: thole.FileName(p.Name), URL: p.URL})
		case "skill", "mention":
			out = append(out, thole.Input{Type: "text", Text: "[" + p.Name + "](" + p.Path + ")"})
		case "audio", "localAudio":
			return nil, thole.Errorf(thole.CodeUnsupported, "input of type %s: agents here take text and images", p.Type)
		case "":
			return nil, invalid("missing field `type`")
		default:
			return nil, invalid("unknown variant `%s`, expected one of `text`, `image`, `localImage`, `audio`, `localAudio`, `skill`, `mention`", p.Type)
		}
	}
	return out, nil
}

// says reports whether params hold what a user says.
func says(params reflect.Type) bool {
	f, ok := params.FieldByName("Input")
	return ok && f.Type == reflect.TypeFor[[]app.UserInput]()
}

// textless refuses a text input without its text, which is not the same as an empty one.
func textless(raw json.RawMessage) *jsonrpc.Error {
	var p struct {
		Input []struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		} `json:"input"`
	}
	_ = strictjson.Unmarshal(raw, &p) // they were decoded already
	for _, in := range p.Input {
		if in.Type == "text" && in.Text == nil {
			return invalid("missing field `text`")
		}
	}
	return nil
}

// imageURL is the data URL of an image.
func imageURL(p app.UserInput) (string, error) {
	url := p.URL
	if url == "" {
		url = p.ImageURL
	}
	switch {
	case url == "" && p.FileID != "":
		return "", thole.Errorf(thole.CodeUnsupported, "image: a file id names an image of the model's service, which agents here cannot use").WithHint("send the image as a data URL")
	case url == "":
		return "", invalid("missing field `url`")
	case remote(url):
		return "", thole.Errorf(thole.CodeInvalid, remoteImage)
	case !strings.HasPrefix(url, "data:image/") || !strings.Contains(url, ";base64,"):
		return "", thole.Errorf(thole.CodeInvalid, "image: the url is not the data URL of an image").WithHint("use data:image/png;base64,…, or localImage for a file")
	}
	return url, nil
}

// localImage is an image in a file: one of the thread's workspace, or of the machine of a
// client that is here, whose agent could not read it itself.
func (s *Server) localImage(ctx context.Context, c *conn, id thole.ThreadID, path string) (string, error) {
	if !filepath.IsAbs(path) {
		return path, nil // of the workspace
	}
	t, err := s.cfg.Threads.Get(ctx, c.who(), id)
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(t.WorkDir(), path); err == nil && filepath.IsLocal(rel) {
		return rel, nil
	}
	if !c.local() {
		return "", thole.Errorf(thole.CodeForbidden, "localImage %s: a file of this machine may be named only by its user, on this machine", path).
			WithHint("send the image as a data URL")
	}
	return readImage(path)
}

// readImage makes the data URL of an image file.
func readImage(path string) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		return "", thole.Errorf(thole.CodeInvalid, "localImage "+path+": "+format, args...)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return bad("%w", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return bad("not a regular file")
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxLocalImage+1))
	if err != nil {
		return bad("%w", err)
	}
	if len(raw) > maxLocalImage {
		return bad("larger than %d bytes", maxLocalImage)
	}
	mime := http.DetectContentType(raw)
	if !strings.HasPrefix(mime, "image/") {
		return bad("not an image that models take")
	}
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(raw), nil
}
