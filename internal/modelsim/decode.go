package modelsim

import (
	"encoding/json"
	"fmt"
	"strings"
)

// decode reads a request body of one API. Only what the answer depends on is
// read; everything else is the CLI's business.
func decode(api string, body []byte) (*conversation, error) {
	var c *conversation
	var err error
	switch api {
	case apiMessages:
		c, err = decodeMessages(body)
	case apiChat:
		c, err = decodeChat(body)
	case apiResponses:
		c, err = decodeResponses(body)
	default:
		return nil, fmt.Errorf("unknown API %q", api)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s request: %w", api, err)
	}
	c.api, c.body = api, body
	return c, nil
}

func decodeMessages(body []byte) (*conversation, error) {
	var req struct {
		Model    string          `json:"model"`
		Stream   bool            `json:"stream"`
		System   json.RawMessage `json:"system"`
		Metadata struct {
			UserID string `json:"user_id"`
		} `json:"metadata"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	c := &conversation{model: req.Model, stream: req.Stream, system: plainText(req.System), tools: map[string]bool{}}
	for _, t := range req.Tools {
		c.tools[t.Name] = false
	}
	for _, m := range req.Messages {
		var blocks []struct {
			Type    string          `json:"type"`
			ID      string          `json:"id"`
			Text    string          `json:"text"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			c.say(m.Role, plainText(m.Content))
			continue
		}
		var texts, calls []string
		for _, b := range blocks {
			switch b.Type {
			case "tool_result":
				text, steers := cutSteers(plainText(b.Content))
				c.add(tool, strings.TrimSpace(dropTagged(text, reminder)))
				c.addUser(steers...)
			case "tool_use":
				calls = append(calls, b.ID)
			case "text":
				texts = append(texts, b.Text)
				// Claude joins messages that nothing was answered to into one; each is
				// a prompt of its own.
				if m.Role == "user" && !strings.HasPrefix(b.Text, imageNote) {
					text, steers := cutSteers(b.Text)
					c.addUser(text)
					c.addUser(steers...)
				}
			}
		}
		if m.Role == "assistant" {
			c.add(model, strings.Join(texts, "\n"), calls...)
		}
	}
	c.finish(claudeSession(req.Metadata.UserID))
	return c, nil
}

// imageNote begins what claude adds to a message with an image.
const imageNote = "[Image: source: "

// claudeSession takes the session out of the JSON that claude sends as user id.
func claudeSession(userID string) string {
	var id struct {
		Session string `json:"session_id"`
	}
	if json.Unmarshal([]byte(userID), &id) == nil && id.Session != "" {
		return id.Session
	}
	return userID
}

func (c *conversation) say(role, text string) {
	switch role {
	case "assistant":
		c.add(model, text)
	case "user":
		c.addUser(text)
	case "tool":
		c.add(tool, text)
	case "system", "developer":
		c.system = join(c.system, text)
	}
}

func decodeChat(body []byte) (*conversation, error) {
	var req struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Key    string `json:"prompt_cache_key"`
		Tools  []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		Messages []struct {
			Role      string          `json:"role"`
			Content   json.RawMessage `json:"content"`
			ToolCalls []struct {
				ID string `json:"id"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	c := &conversation{model: req.Model, stream: req.Stream, tools: map[string]bool{}}
	for _, t := range req.Tools {
		c.tools[t.Function.Name] = false
	}
	for _, m := range req.Messages {
		if len(m.ToolCalls) == 0 {
			c.say(m.Role, plainText(m.Content))
			continue
		}
		var calls []string
		for _, tc := range m.ToolCalls {
			calls = append(calls, tc.ID)
		}
		c.add(model, plainText(m.Content), calls...)
	}
	c.finish(req.Key)
	return c, nil
}

func decodeResponses(body []byte) (*conversation, error) {
	var req struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Key          string          `json:"prompt_cache_key"`
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		Tools        []struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	c := &conversation{model: req.Model, stream: req.Stream, system: req.Instructions, tools: map[string]bool{}}
	for _, t := range req.Tools {
		if t.Name != "" {
			c.tools[t.Name] = t.Type == "custom"
		}
	}
	var items []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		CallID  string          `json:"call_id"`
		Content json.RawMessage `json:"content"`
		Output  json.RawMessage `json:"output"`
		Tools   []struct {
			Name  string `json:"name"`
			Tools []struct {
				Type string `json:"type"`
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"tools"`
	}
	if json.Unmarshal(req.Input, &items) != nil {
		c.addUser(plainText(req.Input))
	}
	for _, it := range items {
		switch {
		case it.Type == "" || it.Type == "message":
			c.say(it.Role, plainText(it.Content))
		case strings.HasSuffix(it.Type, "_output"):
			c.add(tool, plainText(it.Output))
		case strings.HasSuffix(it.Type, "_call"):
			c.add(model, "", it.CallID)
		case it.Type == "reasoning":
			c.add(model, "")
		case it.Type == "additional_tools": // codex offers its newest models their tools here, by namespace
			for _, space := range it.Tools {
				for _, t := range space.Tools {
					c.tools[space.Name+"."+t.Name] = t.Type == "custom"
				}
			}
		}
	}
	c.finish(req.Key)
	return c, nil
}
