package appserver_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/unguarded"
)

const (
	toolCall  = "item/tool/call"
	shopTools = `[{"type":"function","name":"lookup","description":"d","inputSchema":{"type":"object","properties":{"id":{"type":"integer"}}}},` +
		`{"type":"namespace","name":"shop","description":"s","tools":[{"type":"function","name":"price","description":"d","inputSchema":{"type":"object"},"deferLoading":true}]}]`
)

// as connects under another name than the tests' own.
func as(t testing.TB, rig *tholetest.Kit, name string) *wire {
	t.Helper()
	w := connect(t, rig.Stream())
	w.rig = rig
	w.ok("initialize", `{"clientInfo":{"name":"`+name+`","version":"1"},"capabilities":`+full+`}`)
	return w
}

// completed waits for the end of an item of a tool.
func (w *wire) completed(from int, tool string) map[string]any {
	w.t.Helper()
	_, m := w.find(from, "item/completed of "+tool, func(m msg) bool {
		item, _ := m.field("item").(map[string]any)
		return m.Method == "item/completed" && item["tool"] == tool
	})
	return m.field("item").(map[string]any)
}

// A tool is called at the client that brought it and at no other, also after that client
// and the server came back; the tools are kept with the thread and its forks.
func TestClientTools(t *testing.T) {
	rig := tholetest.New(t)
	w := as(t, rig, "an-sdk")
	id := w.thread(`{"dynamicTools":` + shopTools + `}`)
	other := as(t, rig, "an-observer")
	other.ok("thread/resume", `{"threadId":"`+id+`"}`)
	w.turn(id, `sim: call lookup {"id":7} ;; call shop__price {"of":"tea"} ;; say told %tool%`)
	at, q := w.note(0, toolCall)
	var call struct {
		ThreadID, TurnID, CallID, Tool string
		Namespace                      *string
		Arguments                      json.RawMessage
	}
	if err := json.Unmarshal(q.Params, &call); err != nil || call.Tool != "lookup" || call.Namespace != nil || string(call.Arguments) != `{"id":7}` || call.ThreadID != id {
		t.Errorf("call %s: %v", q.Params, err)
	}
	// A client that comes back is asked again, under the same id.
	again := as(t, rig, "an-sdk")
	again.ok("thread/resume", `{"threadId":"`+id+`"}`)
	if _, same := again.note(0, toolCall); string(same.ID) != string(q.ID) {
		t.Errorf("asked as %s and as %s", q.ID, same.ID)
	}
	w.send(`{"id":` + string(q.ID) + `,"result":{"success":true,"contentItems":[{"type":"inputText","text":"seven"},{"type":"inputImage","imageUrl":"data:image/png;base64,aGk="}]}}`)
	item := w.completed(0, "lookup")
	raw, _ := json.Marshal(item["contentItems"])
	if item["type"] != "dynamicToolCall" || item["id"] != call.CallID || item["success"] != true || item["status"] != "completed" || string(raw) != `[{"text":"seven","type":"inputText"},{"imageUrl":"data:image/png;base64,aGk=","type":"inputImage"}]` {
		t.Errorf("item %v", item)
	}
	_, q = w.note(at+1, toolCall)
	if err := json.Unmarshal(q.Params, &call); err != nil || call.Tool != "price" || call.Namespace == nil || *call.Namespace != "shop" {
		t.Errorf("call %s: %v", q.Params, err)
	}
	w.send(`{"id":` + string(q.ID) + `,"result":{"success":true,"contentItems":[{"type":"inputImage","imageUrl":"https://example.com/tea.png"}]}}`)
	item = w.completed(0, "price")
	raw, _ = json.Marshal(item["contentItems"])
	if item["namespace"] != "shop" || item["success"] != false || item["status"] != "failed" || string(raw) != `[{"text":"remote image URLs are not supported; use an inline data URL instead","type":"inputText"}]` {
		t.Errorf("item %v", item)
	}
	w.note(0, "turn/completed")
	for _, m := range other.methods(0) {
		if m == toolCall {
			t.Error("another client was asked")
		}
	}
	fork := w.ok("thread/fork", `{"threadId":"`+id+`"}`)["thread"].(map[string]any)["id"].(string)
	rig.Restart()
	for _, id := range []string{id, fork} {
		if th, err := rig.Threads.Get(t.Context(), thole.LocalActor, thole.ThreadID(id)); err != nil || len(th.Tools) != 2 || th.Tools[1].Tools[0].Name != "price" || !th.Tools[1].Tools[0].Deferred {
			t.Errorf("%+v: %v", th.Tools, err)
		}
	}
	late := as(t, rig, "an-sdk")
	late.ok("thread/resume", `{"threadId":"`+id+`"}`)
	from := late.len()
	late.turn(id, "sim: call lookup {} ;; say told %tool%")
	_, q = late.note(from, toolCall)
	late.send(`{"id":` + string(q.ID) + `,"result":{"success":false,"contentItems":[]}}`)
	if item := late.completed(from, "lookup"); item["success"] != false {
		t.Errorf("item %v", item)
	}
	late.note(from, "turn/completed")
}

func TestClientToolsAreChecked(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	for tools, want := range map[string]string{
		`[{"name":"a","description":"d","inputSchema":{}}]`:                                                      "missing field `type`",
		`[{"type":"macro","name":"a","description":"d"}]`:                                                        "unknown variant `macro`",
		`[{"type":"function","name":"a","description":"d"}]`:                                                     "missing field `inputSchema`",
		`[{"type":"namespace","name":"a","description":"d"}]`:                                                    "missing field `tools`",
		`[{"type":"namespace","name":"a","description":"d","tools":[]}]`:                                         "must contain at least one tool: a",
		`[{"type":"namespace","name":"a","description":"d","tools":[{"type":"namespace","name":"b"}]}]`:          "unknown variant `namespace`, expected `function`",
		`[{"type":"function","name":"a b","description":"d","inputSchema":{}}]`:                                  "must match ^[a-zA-Z0-9_-]+$",
		`[{"type":"function","name":"a","description":"d","inputSchema":{"type":"null"}}]`:                       "input schema is not supported for a",
		`[{"type":"function","name":"a","description":"d","inputSchema":{"type":"object"},"deferLoading":true}]`: "deferred dynamic tool must include a namespace: a",
	} {
		if e := w.refused("thread/start", `{"dynamicTools":`+tools+`}`); !strings.Contains(e.Message, want) {
			t.Errorf("%s: %s", tools, e.Message)
		}
	}
	plain := join(t, rig, `{}`)
	if e := plain.refused("thread/start", `{"dynamicTools":`+shopTools+`}`); e.Message != "thread/start.dynamicTools requires experimentalApi capability" {
		t.Errorf("%s", e.Message)
	}
}

// The TUI's own tools reach every thread of the server; an agent is not given them.
func TestToolsOfTheTUI(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{"dynamicTools":[{"type":"namespace","name":"codex_tui","description":"s","tools":[{"type":"function","name":"read_thread","description":"d","inputSchema":{"type":"object"}}]}]}`)
	th, err := rig.Threads.Get(t.Context(), thole.LocalActor, thole.ThreadID(id))
	if err != nil || (len(th.Tools) > 0) != unguarded.Build {
		t.Errorf("%+v: %v", th.Tools, err)
	}
}

const answerSchema = `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`

// A turn's schema reaches its agent with it, is refused when it is no schema, and is no news for
// a turn that runs.
func TestOutputSchema(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	start := func(prompt, schema string) string {
		return `{"threadId":"` + id + `","input":[{"type":"text","text":"` + prompt + `"}],"outputSchema":` + schema + `}`
	}
	for _, bad := range []string{`[]`, `"x"`, `{"type":"array"}`, `{"type":"object","properties":{"a":{"type":"text"}}}`} {
		if e := w.refused("turn/start", start("sim: say x", bad)); !strings.Contains(e.Message, "invalid outputSchema") {
			t.Errorf("%s: %s", bad, e.Message)
		}
	}
	w.ok("turn/start", start("sim: say %schema%", ` { "type": "object", "properties": {} } `))
	if got := w.said(0); got != `{"type":"object","properties":{}}` {
		t.Errorf("the agent was given %s", got)
	}
	from := w.len()
	w.ok("turn/start", start("sim: say working ;; wait 60s ;; say %schema%", answerSchema))
	w.note(from, "item/started")
	if e := w.refused("turn/start", start("more", answerSchema)); !strings.Contains(e.Message, "keeps its own") {
		t.Errorf("%s", e.Message)
	}
	w.ok("turn/start", start("sim: say steered", "null"))
	w.note(from, "turn/completed")
	from = w.len()
	w.ok("turn/start", start("sim: say none:%schema%", "null"))
	if got := w.said(from); got != "none:" {
		t.Errorf("the schema of a turn stayed: %s", got)
	}
}

// said waits for a turn's end and returns the last message of its agent.
func (w *wire) said(from int) (text string) {
	w.t.Helper()
	end, _ := w.note(from, "turn/completed")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.got[from:end] {
		if item, _ := m.field("item").(map[string]any); m.Method == "item/completed" && item["type"] == "agentMessage" {
			text, _ = item["text"].(string)
		}
	}
	return text
}

// What a user says is read as upstream reads it: texts have one, images are data.
func TestInputs(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	id := w.thread(`{}`)
	dir := t.TempDir()
	file := func(name string, body []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	good, words, large := file("good.png", picture.Bytes()), file("words.png", []byte("no picture")), file("large.png", append(picture.Bytes(), make([]byte, 10<<20)...))
	for input, want := range map[string]string{
		`[{"type":"text"}]`:                                      "missing field `text`",
		`[{"type":"image"}]`:                                     "missing field `url`",
		`[{"type":"image","fileId":"f"}]`:                        "a file id names an image",
		`[{"type":"image","url":"https://example.com/x.png"}]`:   "remote image URLs are not supported; use an inline data URL instead",
		`[{"type":"image","url":"data:text/plain;base64,aGk="}]`: "not the data URL of an image",
		`[{"type":"image","url":"x.png"}]`:                       "not the data URL of an image",
		`[{"type":"localImage"}]`:                                "missing field `path`",
		`[{"type":"localImage","path":"/nowhere/x.png"}]`:        "no such file",
		`[{"type":"localImage","path":"` + dir + `"}]`:           "not a regular file",
		`[{"type":"localImage","path":"` + words + `"}]`:         "not an image",
		`[{"type":"localImage","path":"` + large + `"}]`:         "larger than",
		`[{"type":"audio","url":"data:audio/wav;base64,aGk="}]`:  "agents here take text and images",
		`[{"type":"video"}]`:                                     "unknown variant `video`",
	} {
		if e := w.refused("turn/start", `{"threadId":"`+id+`","input":`+input+`}`); !strings.Contains(e.Message, want) {
			t.Errorf("%s: %s", input, e.Message)
		}
	}
	for output, want := range map[string]string{`null`: "missing field `output`", `7`: "did not match any variant", `""`: "must not be empty", `[{"type":"input_image","image_url":"x"}]`: "agents here take texts"} {
		if e := w.refused("turn/start", `{"threadId":"`+id+`","input":[],"toolOutput":{"name":"n","output":`+output+`}}`); !strings.Contains(e.Message, want) {
			t.Errorf("%s: %s", output, e.Message)
		}
	}
	if e := w.refused("turn/start", `{"threadId":"`+id+`","input":[],"toolOutput":{"name":"n"}}`); !strings.Contains(e.Message, "missing field `output`") {
		t.Errorf("%s", e.Message)
	}
	data := "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture.Bytes())
	for _, input := range []string{`{"type":"image","url":"` + data + `"}`, `{"type":"image","imageUrl":"` + data + `"}`, `{"type":"localImage","path":"` + good + `"}`} {
		from := w.len()
		w.ok("turn/start", `{"threadId":"`+id+`","input":[{"type":"text","text":"sim: say seen"},`+input+`]}`)
		_, m := w.find(from, "the user's message", func(m msg) bool {
			item, _ := m.field("item").(map[string]any)
			return m.Method == "item/completed" && item["type"] == "userMessage"
		})
		parts := m.field("item").(map[string]any)["content"].([]any)
		if got := parts[1].(map[string]any); got["type"] != "image" || got["url"] != data {
			t.Errorf("%s became %.80v", input, got)
		}
		w.note(from, "turn/completed")
	}
}
