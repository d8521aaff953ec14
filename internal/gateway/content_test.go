package gateway

import (
	"strings"
	"testing"
)

func TestContentFromElsewhere(t *testing.T) {
	const away = `"https://away.example/?secret"`
	for _, c := range []struct {
		d            Dialect
		body         string
		tools, store bool // what it takes
	}{
		{Anthropic, `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":` + away + `}}]}]`, true, false},
		{Anthropic, `"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"document","source":{"type":"url","url":` + away + `}}]}]}]`, true, false},
		{Anthropic, `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"f"}}]}]`, false, true},
		{Anthropic, `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"url","URL":` + away + `}}]}}]}]`, true, false},
		{Responses, `"input":[{"type":"message","content":[{"type":"input_image","image_url":` + away + `}]}]`, true, false},
		{Responses, `"input":[{"type":"message","content":[{"type":"input_file","file_url":` + away + `}]}]`, true, false},
		{Responses, `"input":[{"type":"function_call_output","output":[{"type":"input_image","image_url":"\u0068ttp://x"}]}]`, true, false},
		{Responses, `"input":[{"type":"message","content":[{"type":"input_file","file_id":"f"}]}]`, false, true},
		{Chat, `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":` + away + `}}]}]`, true, false},
		{Chat, `"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}]`, false, true},

		{Anthropic, `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"AAAA"}}]}]`, false, false},
		{Anthropic, `"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"url":` + away + `,"image_url":` + away + `}}]}]`, false, false},
		{Anthropic, `"messages":[{"role":"user","content":` + away + `}],"system":[{"type":"text","text":` + away + `}]`, false, false},
		{Anthropic, `"messages":[{"role":"user","content":[{"type":"search_result","source":` + away + `,"content":[{"type":"text","text":"x"}]}]}]`, false, false},
		{Responses, `"input":[{"type":"function_call","arguments":"{\"url\":\"https://x\"}"},{"type":"function_call_output","output":` + away + `}]`, false, false},
		{Responses, `"input":[{"type":"message","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"},{"type":"input_image","image_url":null,"file_id":null}]}]`, false, false},
		{Chat, `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]`, false, false},
	} {
		body := []byte(`{"model":"m","max_tokens":1,` + c.body + `}`)
		for _, g := range []Grants{{}, {Tools: true}, {Stored: true}, {Tools: true, Stored: true}} {
			_, f := parseRequest(c.d, body, g)
			if want := c.tools && !g.Tools || c.store && !g.Stored; want != (f != nil) {
				t.Errorf("%s with %+v: %+v", body, g, f)
			}
		}
	}
	deep := `{"model":"m","messages":` + strings.Repeat(`[{"content":`, 20) + `[]` + strings.Repeat(`}]`, 20) + `}`
	if _, f := parseRequest(Chat, []byte(deep), Grants{}); f == nil {
		t.Error("nested without an end")
	}
}
