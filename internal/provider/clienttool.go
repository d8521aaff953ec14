package provider

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/strictjson"
)

// ClientToolsName is the name, in every CLI without such tools of its own, of the tool
// server that has those of the thread's client. ClientToolsPath is added to the URL of
// the tool server.
const (
	ClientToolsName = "thole_client"
	ClientToolsPath = "/client"
)

// ClientToolWait is how long a CLI waits for one of them, in milliseconds. One whose server
// was killed hears of nothing else.
const ClientToolWait = 3_600_000

// maxCallName is what the model services take of a tool's name, less the longest prefix
// that a CLI puts before it.
const maxCallName = 64 - len("mcp__"+ClientToolsName+"__")

// ClientTool is one tool of a client and where it stands.
type ClientTool struct {
	event.ClientTool
	Namespace string
}

// ClientTools are a thread's tools by the names that its agent calls them by.
func ClientTools(tools []event.ClientTool) map[string]ClientTool {
	all := map[string]ClientTool{}
	for _, t := range tools {
		if t.Tools == nil {
			all[callName("", t.Name)] = ClientTool{ClientTool: t}
		}
		for _, one := range t.Tools {
			all[callName(t.Name, one.Name)] = ClientTool{one, t.Name}
		}
	}
	return all
}

// callName is one name for a tool and its namespace. What is too long keeps its beginning
// and stays apart from others.
func callName(namespace, name string) string {
	full := name
	if namespace != "" {
		full = namespace + "__" + name
	}
	if len(full) <= maxCallName {
		return full
	}
	const mark = 12
	return full[:maxCallName-mark-1] + "_" + strings.ReplaceAll(StableID[string]("client tool", namespace, name), "-", "")[:mark]
}

// ErrNoTools says that a client's tools cannot be reached by a CLI that has none of its own.
func ErrNoTools() error {
	return thole.Errorf(thole.CodeUnsupported, "%w: the tools of the thread's client are reached through thole's tool server, which is switched off", ErrUnsupported).
		WithHint("set agents.mcp = true, or start a thread without dynamicTools")
}

// ClientContent reads what a client's tool returned from the content of an MCP result, "" for
// what is too long to be kept.
func ClientContent(raw json.RawMessage) (out []event.ToolContent) {
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
		Data string `json:"data"`
		Mime string `json:"mimeType"`
	}
	if strictjson.Unmarshal(raw, &parts) != nil {
		return nil
	}
	for _, p := range parts {
		switch {
		case p.Type == "text":
			text, _ := Bound(p.Text)
			out = append(out, event.ToolContent{Type: "text", Text: text})
		case p.Type == "image" && len(p.Data) <= OutputLimit:
			out = append(out, event.ToolContent{Type: "image", URL: "data:" + p.Mime + ";base64," + p.Data})
		default:
			out = append(out, event.ToolContent{Type: "text", Text: "[" + cmp.Or(p.Type, "part") + " that is not kept]"})
		}
	}
	return out
}

// ToolAnswer is what a client answered to a call of its tool.
type ToolAnswer struct {
	Content []event.ToolContent
	OK      bool
}

// ReadToolAnswer reads the answer to an ask of kind tool. One that was refused, or that
// nobody gave, is a failure in words.
func ReadToolAnswer(a event.Answer) ToolAnswer {
	var body struct {
		Items []struct {
			Type  string `json:"type"`
			Text  string `json:"text"`
			Image string `json:"imageUrl"`
			Audio string `json:"audioUrl"`
		} `json:"contentItems"`
		Success bool `json:"success"`
	}
	if len(a.Result) == 0 || a.Decision == event.DecisionDeny || a.Decision == event.DecisionCancel {
		return ToolAnswer{Content: []event.ToolContent{{Type: "text", Text: cmp.Or(a.Message, "the call was refused")}}}
	}
	if strictjson.Unmarshal(a.Result, &body) != nil {
		return ToolAnswer{Content: []event.ToolContent{{Type: "text", Text: "dynamic tool response was invalid"}}}
	}
	out := ToolAnswer{OK: body.Success}
	for _, p := range body.Items {
		switch p.Type {
		case "inputImage":
			out.Content = append(out.Content, event.ToolContent{Type: "image", URL: p.Image})
		case "inputAudio":
			out.Content = append(out.Content, event.ToolContent{Type: "audio", URL: p.Audio})
		default:
			out.Content = append(out.Content, event.ToolContent{Type: "text", Text: p.Text})
		}
	}
	return out
}

// MCP is the answer as the result of an MCP tool.
func (a ToolAnswer) MCP() map[string]any {
	content := []any{}
	for _, p := range a.Content {
		mime, data, err := dataURL(p.URL)
		switch {
		case p.Type == "text" || err != nil:
			content = append(content, map[string]string{"type": "text", "text": p.Text + p.URL})
		default:
			content = append(content, map[string]string{"type": p.Type, "mimeType": mime, "data": data})
		}
	}
	return map[string]any{"content": content, "isError": !a.OK}
}

// dataURL takes a data URL apart.
func dataURL(url string) (mime, data string, err error) {
	rest, ok := strings.CutPrefix(url, "data:")
	if ok {
		mime, data, ok = strings.Cut(rest, ";base64,")
	}
	if !ok {
		return "", "", thole.Errorf(thole.CodeInvalid, "an image's data URL must be base64")
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil {
		return "", "", thole.Errorf(thole.CodeInvalid, "an image's data URL must be base64: %w", err)
	}
	return mime, data, nil
}
