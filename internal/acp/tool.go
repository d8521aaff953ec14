package acp

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// isTool reports whether editors show an item as a tool call.
func isTool(it *app.Item) bool {
	switch it.Type {
	case app.ItemCommandExecution, app.ItemFileChange, app.ItemMCPToolCall, app.ItemDynamicToolCall:
		return true
	}
	return false
}

// describe is an item as a tool call, without the output of a command: that may grow.
func describe(it *app.Item, cwd string) toolCall {
	out := toolCall{ID: it.ID, Status: status(it.Status)}
	switch it.Type {
	case app.ItemCommandExecution:
		line := shellLine(str(it.Command))
		out.Title, out.Kind = cmp.Or(line, "Run a command"), actionKind(it.CommandActions)
		out.RawInput = object{"command": line, "cwd": cmp.Or(str(it.Cwd), cwd)}
	case app.ItemFileChange:
		changes(&out, it.Changes, cwd)
	case app.ItemMCPToolCall:
		out.Title, out.Name, out.Kind, out.RawInput = it.Server+": "+it.Tool, it.Tool, kindOther, it.Arguments
		if it.Error != nil {
			out.Content = []toolContent{toolText(it.Error.Message)}
		} else if it.Result != nil {
			out.RawOutput = it.Result
			for _, part := range it.Result.Content {
				out.Content = append(out.Content, mcpContent(part))
			}
		}
	case app.ItemDynamicToolCall:
		named(&out, it, cwd)
	}
	return out
}

func status(word string) string {
	switch word {
	case app.ItemCompleted:
		return statusCompleted
	case app.ItemFailed, app.ItemDeclined:
		return statusFailed
	}
	return statusRunning
}

// changes shows edits: each with its absolute path, and text before and after.
func changes(out *toolCall, list []app.FileChange, cwd string) {
	out.Kind, out.Title = kindEdit, "Edit files"
	input := make([]object, 0, len(list))
	for i, c := range list {
		at := absolute(c.Path, cwd)
		kind, verb := kindEdit, "Edit "
		switch {
		case c.Kind.Type == "add":
			verb = "Write "
		case c.Kind.Type == "delete":
			kind, verb = kindDelete, "Delete "
		case str(c.Kind.Move) != "":
			kind, verb = kindMove, "Move "
			input = append(input, object{"path": at, "kind": "move", "to": absolute(*c.Kind.Move, cwd)})
		}
		if kind != kindMove {
			input = append(input, object{"path": at, "kind": c.Kind.Type})
		}
		diff, line := differences(c, at)
		out.Content = append(out.Content, diff...)
		out.Locations = append(out.Locations, location{Path: at, Line: &line})
		switch i {
		case 0:
			out.Kind, out.Title = kind, verb+shown(at, cwd)
		default:
			out.Title += ", " + shown(at, cwd)
			if kind != out.Kind {
				out.Kind = kindEdit
			}
		}
	}
	if len(list) > 0 {
		out.RawInput = object{"changes": input}
	}
}

// absolute is a path under its own name; agents report some relative to where they work.
func absolute(path, cwd string) string {
	if filepath.IsAbs(path) || cwd == "" {
		return filepath.Clean(path)
	}
	return filepath.Join(cwd, path)
}

// shown is a path as a title has it: short where it lies in the session's directory.
func shown(path, cwd string) string {
	if rel, err := filepath.Rel(cwd, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

// toolKinds are the tools of the agents by what they do.
var toolKinds = map[string]string{
	"read": kindRead, "view": kindRead, "view_image": kindRead, "notebookread": kindRead,
	"glob": kindSearch, "grep": kindSearch, "ls": kindSearch, "list": kindSearch, "search": kindSearch, "codesearch": kindSearch, "toolsearch": kindSearch,
	"edit": kindEdit, "write": kindEdit, "multiedit": kindEdit, "notebookedit": kindEdit, "patch": kindEdit, "apply_patch": kindEdit,
	"webfetch": kindFetch, "websearch": kindFetch, "web_search": kindFetch,
	"bash": kindExecute, "task": kindThink, "agent": kindThink, "todowrite": kindThink, "exitplanmode": kindMode, "enterplanmode": kindMode,
}

// named shows a call of an agent's own tool.
func named(out *toolCall, it *app.Item, cwd string) {
	out.Name, out.RawInput = it.Tool, it.Arguments
	out.Kind = cmp.Or(toolKinds[strings.ToLower(it.Tool)], kindOther)
	out.Title = it.Tool
	var args map[string]json.RawMessage
	if strictjson.Unmarshal(it.Arguments, &args) == nil {
		for _, name := range []string{"file_path", "filePath", "path", "notebook_path"} {
			var path string
			if strictjson.Unmarshal(args[name], &path) == nil && path != "" {
				at := absolute(path, cwd)
				out.Locations = []location{{Path: at}}
				out.Title = it.Tool + " " + shown(at, cwd)
				break
			}
		}
		for _, name := range []string{"pattern", "query", "url", "description"} {
			var text string
			if strictjson.Unmarshal(args[name], &text) == nil && text != "" {
				out.Title = it.Tool + " " + oneLine(text, 100)
				break
			}
		}
	}
	for _, part := range it.ContentItems {
		switch {
		case part.Text != "":
			out.Content = append(out.Content, toolText(part.Text))
		case part.ImageURL != "":
			out.Content = append(out.Content, picture(part.ImageURL))
		}
	}
	if it.ContentItems != nil {
		out.RawOutput = it.ContentItems
	}
}

func picture(url string) toolContent {
	b := blocks([]app.UserInput{{Type: "image", URL: url}})[0]
	return toolContent{Type: "content", Content: &b}
}

// mcpContent is a part of what an MCP server's tool returned.
func mcpContent(raw json.RawMessage) toolContent {
	var part struct {
		Type, Text, Data string
		MimeType         string `json:"mimeType"`
	}
	if strictjson.Unmarshal(raw, &part) == nil {
		switch {
		case part.Type == "text":
			return toolText(part.Text)
		case part.Type == "image" && part.Data != "":
			return toolContent{Type: "content", Content: &block{Type: "image", Data: part.Data, MimeType: part.MimeType}}
		}
	}
	return toolText(string(raw))
}

// actionKind is what a command does, where the server knows.
func actionKind(actions []app.CommandAction) string {
	all := func(kinds ...string) bool {
		return len(actions) > 0 && !slices.ContainsFunc(actions, func(a app.CommandAction) bool { return !slices.Contains(kinds, a.Type) })
	}
	switch {
	case all("read"):
		return kindRead
	case all("read", "search", "listFiles"):
		return kindSearch
	}
	return kindExecute
}

// shellLine is the line that a shell is given, of a command that starts one for it.
func shellLine(command string) string {
	program, rest, ok := strings.Cut(command, " ")
	if !ok || !slices.Contains([]string{"sh", "bash", "zsh"}, filepath.Base(program)) {
		return command
	}
	for _, flag := range []string{"-lc ", "-c "} {
		if line, ok := strings.CutPrefix(rest, flag); ok {
			if word, ok := unquote(line); ok {
				return word
			}
		}
	}
	return command
}

// unquote reads one word of a shell, and reports whether that is all there is.
func unquote(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return "", false
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 1
		case '"':
			for i++; ; i++ {
				if i >= len(s) {
					return "", false
				}
				if s[i] == '"' {
					break
				}
				if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\"\\$`", s[i+1]) >= 0 {
					i++
				}
				b.WriteByte(s[i])
			}
		case '\\':
			if i++; i >= len(s) {
				return "", false
			}
			b.WriteByte(s[i])
		case ' ', '\t', '\n':
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

func str(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// oneLine is the beginning of a text, on one line.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
