package acp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/acp"
)

// asServer makes this program an MCP server instead of a test.
const asServer = "THOLE_TEST_MCP_SERVER"

// mcpServer is a server with two tools, one of a name that models do not take, in two pages.
func mcpServer(in io.Reader, out io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name, Cursor string
				Arguments    struct{ Of string }
			}
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || len(m.ID) == 0 {
			continue
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
			fmt.Fprintln(out, `{"jsonrpc":"2.0","id":"mine","method":"roots/list"}`)
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"price","description":"d","inputSchema":{"type":"object"}}],"nextCursor":"2"}`
			if m.Params.Cursor == "2" {
				result = `{"tools":[{"name":"fs.read","inputSchema":{"type":"object"}}]}`
			}
		case "tools/call":
			result = fmt.Sprintf(`{"content":[{"type":"text","text":"%s of %s for %s"}],"isError":%t}`, m.Params.Name, m.Params.Arguments.Of, os.Getenv("BUYER"), m.Params.Arguments.Of == "gold")
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
}

func shop(name string) obj {
	return obj{"name": name, "command": os.Args[0], "args": []any{}, "env": []any{obj{"name": asServer, "value": "1"}, obj{"name": "BUYER", "value": "Ada"}}}
}

// permission reads until the editor is asked, and answers.
func (e *editor) permission(option string) (title string) {
	e.t.Helper()
	for {
		m := e.read()
		if m.Method == "" {
			e.t.Fatalf("the prompt ended with %+v, and nothing was asked", m)
		}
		if m.Method != "session/request_permission" {
			continue
		}
		title, _ = m.Ask.ToolCall["title"].(string)
		raw, _ := json.Marshal(obj{"jsonrpc": "2.0", "id": m.AskID, "result": obj{"outcome": obj{"outcome": "selected", "optionId": option}}})
		if _, err := fmt.Fprintf(e.in, "%s\n", raw); err != nil {
			e.t.Fatal(err)
		}
		return title
	}
}

// say prompts and waits for the end, answering what is asked.
func (e *editor) say(session, text string, options ...string) (titles []string) {
	e.t.Helper()
	e.updates = nil
	id := e.send("session/prompt", prompt(session, text))
	for _, o := range options {
		titles = append(titles, e.permission(o))
	}
	for {
		switch m := e.read(); {
		case m.Method == "session/request_permission":
			e.t.Errorf("the editor is asked for %v", m.Ask.ToolCall["title"])
		case m.Method == "" && m.ID == id:
			if m.Error != nil || m.Result["stopReason"] != "end_turn" {
				e.t.Errorf("%s ended with %+v", text, m)
			}
			return titles
		}
	}
}

// The MCP servers of an editor run where it runs, and agents call their tools when the user
// allows it. One that does not start is named, and the session opens without it.
func TestServersOfTheEditor(t *testing.T) {
	e := connect(t, func(c *acp.Config) { c.Profile = "ask" })
	dir := t.TempDir()
	e.answer(e.send("initialize", obj{"protocolVersion": 1}))
	for name, bad := range map[string][]any{
		"a server of type http": {obj{"type": "http", "name": "x", "url": "http://127.0.0.1:1", "headers": []any{}}},
		"a name and a command":  {obj{"name": "x", "args": []any{}, "env": []any{}}},
		"mcpServers[0]":         {7},
	} {
		if m := e.answer(e.send("session/new", obj{"cwd": dir, "mcpServers": bad})); m.Error == nil || !strings.Contains(m.Error.Message, name) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	m := e.answer(e.send("session/new", obj{"cwd": dir, "mcpServers": []any{
		shop("my shop"), shop("my_shop"),
		obj{"name": "gone", "command": "/nonexistent/server", "args": []any{}, "env": []any{}},
		obj{"name": "dies", "command": "sh", "args": []any{"-c", "echo out of stock >&2; exit 3"}, "env": []any{}},
	}}))
	if m.Error != nil {
		t.Fatal(m.Error.Message)
	}
	s := m.Result["sessionId"].(string)
	e.say(s, "sim: say hello")
	if got := e.text(); !strings.Contains(got, "MCP server gone cannot be used") || !strings.Contains(got, "MCP server dies cannot be used") || !strings.Contains(got, "out of stock") || strings.Contains(got, "my_shop") {
		t.Errorf("the user reads %q", got)
	}

	for _, c := range []struct {
		tool, option, shows string
	}{
		{`my_shop__price {"of":"tea"}`, "allow", "price of tea for Ada"},
		{`my_shop__price {"of":"gold"}`, "allow", "price of gold for Ada"},
		{`my_shop__price {"of":"milk"}`, "deny", "The user did not allow this call."},
		{`my_shop___fs_read {"of":"tea"}`, "allow", "fs.read of tea for Ada"},
		{`my_shop__price {"of":"tea"}`, "always", "price of tea for Ada"},
		{`my_shop__price {"of":"cup"}`, "", "price of cup for Ada"},
	} {
		var options []string
		if c.option != "" {
			options = []string{c.option}
		}
		tool, _, _ := strings.Cut(c.tool, " ")
		titles := e.say(s, "sim: call "+c.tool+" ;; say told %tool%", options...)
		if len(titles) > 0 && !strings.HasPrefix(titles[0], tool+" 'of=") {
			t.Errorf("the user is asked for %q", titles[0])
		}
		if got := e.text(); !strings.Contains(got, "told "+c.shows) {
			t.Errorf("%s, %s: the agent said %q", c.tool, c.option, got)
		}
		if calls := e.calls(); calls != 1 {
			t.Errorf("%s: the editor was shown %d calls", c.tool, calls)
		}
	}

	// The session is loaded again: its servers are called again, and a new one has no tools.
	e.updates = nil
	m = e.answer(e.send("session/load", obj{"sessionId": s, "cwd": dir, "mcpServers": []any{shop("my shop"), shop("late")}}))
	if m.Error != nil {
		t.Fatal(m.Error.Message)
	}
	titles := e.say(s, `sim: call my_shop__price {"of":"tea"} ;; say told %tool%`, "allow")
	if got := e.text(); len(titles) != 1 || !strings.Contains(got, "told price of tea for Ada") || !strings.Contains(got, "no tools of the MCP server late") {
		t.Errorf("after it was loaded the agent said %q", got)
	}

	// In the mode that never asks, nothing is asked.
	e.answer(e.send("session/set_mode", obj{"sessionId": s, "modeId": "full"}))
	e.say(s, `sim: call my_shop__price {"of":"milk"} ;; say told %tool%`)
	if got := e.text(); !strings.Contains(got, "told price of milk for Ada") {
		t.Errorf("unasked, the agent said %q", got)
	}

	// Nobody but the owner is answered, and a stop withdraws what the user was asked.
	e.answer(e.send("session/set_mode", obj{"sessionId": s, "modeId": "plan"}))
	id := e.send("session/prompt", prompt(s, `sim: call my_shop__price {"of":"milk"} ;; say never`))
	for e.read().Method != "session/request_permission" {
	}
	fmt.Fprintf(e.in, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", s)
	withdrawn := false
	for {
		m := e.read()
		withdrawn = withdrawn || m.Method == "$/cancel_request"
		if m.Method == "" && m.ID == id {
			if m.Result["stopReason"] != "cancelled" {
				t.Errorf("the stopped prompt ended with %+v", m)
			}
			break
		}
	}
	if m := e.answer(e.send("session/close", obj{"sessionId": s})); m.Error != nil {
		t.Error(m.Error.Message)
	}
}

// calls counts the tool calls that the editor was shown.
func (e *editor) calls() (n int) {
	for _, u := range e.updates {
		if u["sessionUpdate"] == "tool_call" {
			n++
		}
	}
	return n
}
