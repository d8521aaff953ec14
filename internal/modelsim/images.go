package modelsim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// imagesMark stands in a text for what images says.
const imagesMark = "%images%"

// images lists the images of a request, oldest first: "image/png of 70 bytes".
func images(body []byte) (out []string) {
	var root any
	if json.Unmarshal(body, &root) != nil {
		return nil
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			if mime, data, ok := image(v); ok {
				raw, err := base64.StdEncoding.DecodeString(data)
				if err != nil {
					out = append(out, mime+" that is no base64")
					return
				}
				out = append(out, fmt.Sprintf("%s of %d bytes", mime, len(raw)))
				return
			}
			for _, name := range []string{"messages", "input", "content", "output"} { // in which messages are
				walk(v[name])
			}
		}
	}
	walk(root)
	return out
}

// image reads a part of a message in the form of any of the APIs.
func image(part map[string]any) (mime, data string, ok bool) {
	switch part["type"] {
	case "image": // Anthropic's
		source, _ := part["source"].(map[string]any)
		mime, _ = source["media_type"].(string)
		data, ok = source["data"].(string)
		return mime, data, ok
	case "image_url": // chat completions
		inner, _ := part["image_url"].(map[string]any)
		return cutDataURL(inner["url"])
	case "input_image": // Responses
		return cutDataURL(part["image_url"])
	}
	return "", "", false
}

func cutDataURL(v any) (mime, data string, ok bool) {
	url, _ := v.(string)
	rest, ok := strings.CutPrefix(url, "data:")
	if ok {
		mime, data, ok = strings.Cut(rest, ";base64,")
	}
	return mime, data, ok
}
