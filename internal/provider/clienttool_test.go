package provider

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/tholehq/thole/event"
)

// Names that a CLI calls tools by are short enough for every model service and apart.
func TestClientToolNames(t *testing.T) {
	long := strings.Repeat("n", 64)
	tools := []event.ClientTool{
		{Name: "plain"},
		{Name: "shop", Tools: []event.ClientTool{{Name: "price"}}},
		{Name: strings.Repeat("a", 128)}, {Name: strings.Repeat("a", 127) + "b"},
		{Name: long, Tools: []event.ClientTool{{Name: strings.Repeat("a", 128)}, {Name: "x"}}},
	}
	all := ClientTools(tools)
	if len(all) != 6 || all["plain"].Name != "plain" || all["shop__price"].Name != "price" || all["shop__price"].Namespace != "shop" {
		t.Errorf("%v", reflect.ValueOf(all).MapKeys())
	}
	for name := range all {
		if len("mcp__"+ClientToolsName+"__"+name) > 64 {
			t.Errorf("%s is too long", name)
		}
	}
	if again := ClientTools(tools); !reflect.DeepEqual(all, again) {
		t.Error("names change")
	}
}

func TestToolAnswer(t *testing.T) {
	picture := "data:image/png;base64,aGk="
	got := ReadToolAnswer(event.Answer{Result: json.RawMessage(`{"success":true,"contentItems":[{"type":"inputText","text":"a"},{"type":"inputImage","imageUrl":"` + picture + `"},{"type":"inputAudio","audioUrl":"data:audio/wav;base64,aGk="}]}`)})
	body, _ := json.Marshal(got.MCP())
	if want := `{"content":[{"text":"a","type":"text"},{"data":"aGk=","mimeType":"image/png","type":"image"},{"data":"aGk=","mimeType":"audio/wav","type":"audio"}],"isError":false}`; string(body) != want {
		t.Errorf("%s", body)
	}
	for _, a := range []event.Answer{
		{Decision: event.DecisionDeny, Message: "nobody"}, {Result: json.RawMessage(`[]`)}, {Result: json.RawMessage(`{"success":true}`), Decision: event.DecisionCancel}, {},
	} {
		if got := ReadToolAnswer(a); got.OK || len(got.Content) != 1 || got.Content[0].Text == "" {
			t.Errorf("%+v: %+v", a, got)
		}
	}
	broken := ToolAnswer{OK: true, Content: []event.ToolContent{{Type: "image", URL: "https://example.com/x.png"}, {Type: "image", URL: "data:image/png;base64,***"}}}.MCP()
	if body, _ := json.Marshal(broken); strings.Contains(string(body), `"data"`) {
		t.Errorf("%s", body)
	}
	parts := ClientContent(json.RawMessage(`[{"type":"text","text":"a"},{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"resource"}]`))
	if len(parts) != 3 || parts[1].URL != picture || parts[2].Text != "[resource that is not kept]" {
		t.Errorf("%+v", parts)
	}
	if ClientContent(json.RawMessage(`"text"`)) != nil {
		t.Error("a text has parts")
	}
}
