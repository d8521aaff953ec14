package gateway

import (
	"strings"

	"github.com/tholehq/thole/internal/strictjson"
)

// conversation are the members that hold what was said.
var conversation = []string{"messages", "input", "system"}

// maxNested bounds how deep content holds content; each level is read again.
const maxNested = 12

// ungrantedContent refuses images and documents that the model's side would have to get
// from elsewhere: an address to fetch carries anything out of the executor, and a file
// that lies at the service is state there. What an agent passes to its tools is not
// looked into.
func ungrantedContent(v strictjson.Value, g Grants, depth int) *refusal {
	if depth > maxNested {
		return refuse(invalid, "content is nested too deep")
	}
	switch v[0] {
	case '[':
		all, err := v.Elements()
		if err != nil {
			return refuse(invalid, "content: %v", err)
		}
		for _, part := range all {
			if f := ungrantedContent(part, g, depth+1); f != nil {
				return f
			}
		}
	case '{':
		members, err := v.Members()
		if err != nil {
			return refuse(invalid, "content: %v", err)
		}
		for _, m := range members {
			if f := ungrantedPart(strings.ToLower(m.Name), m.Value, g, depth); f != nil {
				return f
			}
		}
	}
	return nil
}

func ungrantedPart(name string, v strictjson.Value, g Grants, depth int) *refusal {
	text := v[0] == '"'
	switch name {
	case "content", "output", "source", "file":
		if text { // said, or only a name
			return nil
		}
		return ungrantedContent(v, g, depth+1)
	case "url", "image_url", "file_url", "video_url", "audio_url":
		if !text {
			return ungrantedContent(v, g, depth+1)
		}
		var address string
		if err := strictjson.Unmarshal(v, &address); err != nil {
			return refuse(invalid, "%s: %v", name, err)
		}
		if !g.Tools && address != "" && !strings.HasPrefix(strings.ToLower(address), "data:") {
			return refuse(invalid, "%s: fetching at the model service is not granted to this executor; send the data itself", name)
		}
	case "file_id":
		if !g.Stored && text && string(v) != `""` {
			return refuse(invalid, "file_id: state at the model service is not granted to this executor")
		}
	}
	return nil
}
