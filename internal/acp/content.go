package acp

import (
	"cmp"
	"encoding/json"
	"path"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/protocol/app"
)

func encode(v any) json.RawMessage {
	raw, _ := json.Marshal(v) // of our own types, which always encode
	return raw
}

// inputs is what an editor's user says. Kinds that threads do not carry become text or
// are refused; none is dropped.
func inputs(blocks []block) ([]app.UserInput, error) {
	out := make([]app.UserInput, 0, len(blocks))
	for _, b := range blocks {
		switch b.Type {
		case "text":
			out = append(out, app.UserInput{Type: "text", Text: b.Text})
		case "image":
			in, err := image(b.MimeType, b.Data)
			if err != nil {
				return nil, err
			}
			out = append(out, in)
		case "resource_link":
			out = append(out, app.UserInput{Type: "mention", Name: cmp.Or(b.Name, b.URI), Path: local(b.URI)})
		case "resource":
			in, err := embedded(b.Resource)
			if err != nil {
				return nil, err
			}
			out = append(out, in)
		default:
			return nil, thole.Errorf(thole.CodeInvalid, "content of type %q cannot be given to an agent", b.Type).WithHint("use text, image, resource or resource_link")
		}
	}
	if len(out) == 0 {
		return nil, thole.Errorf(thole.CodeInvalid, "the prompt is empty")
	}
	return out, nil
}

func image(mime, data string) (app.UserInput, error) {
	if !strings.HasPrefix(mime, "image/") || data == "" {
		return app.UserInput{}, thole.Errorf(thole.CodeInvalid, "an image needs a mimeType image/… and data")
	}
	return app.UserInput{Type: "image", URL: "data:" + mime + ";base64," + data}, nil
}

// embedded is a file that the editor sends with the message.
func embedded(r *resource) (app.UserInput, error) {
	switch {
	case r == nil || r.Text == nil && r.Blob == nil:
		return app.UserInput{}, thole.Errorf(thole.CodeInvalid, "a resource needs a text or a blob")
	case r.Text != nil:
		return app.UserInput{Type: "text", Text: "[" + path.Base(r.URI) + "](" + local(r.URI) + "):\n\n" + fenced(*r.Text)}, nil
	case strings.HasPrefix(r.MimeType, "image/"):
		return image(r.MimeType, *r.Blob)
	}
	return app.UserInput{}, thole.Errorf(thole.CodeInvalid, "a resource of type %q cannot be given to an agent", r.MimeType).WithHint("send a link to it: the agent works in the same directory")
}

// fenced is text as a block of markdown, in a fence that it does not hold itself.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

// local is a file's path, or another URI as it is.
func local(uri string) string { return strings.TrimPrefix(uri, "file://") }

// blocks is what a user said, for an editor.
func blocks(in []app.UserInput) []block {
	out := make([]block, 0, len(in))
	for _, p := range in {
		switch head, data, ok := strings.Cut(strings.TrimPrefix(p.URL, "data:"), ";base64,"); {
		case p.Type != "image":
			out = append(out, textBlock(p.Text))
		case ok && strings.HasPrefix(p.URL, "data:"):
			out = append(out, block{Type: "image", MimeType: head, Data: data})
		default:
			out = append(out, block{Type: "resource_link", Name: path.Base(p.URL), URI: p.URL})
		}
	}
	return out
}
