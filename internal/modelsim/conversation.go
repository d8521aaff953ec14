package modelsim

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

type speaker int

const (
	user speaker = iota
	model
	tool
)

// turn is one stretch of the history by one speaker. calls are the ids of the
// tools a model turn called; they carry the response they came from, see callID.
type turn struct {
	who   speaker
	text  string
	calls []string
}

// conversation is a request of any of the three APIs in one form.
type conversation struct {
	api    string
	model  string
	key    string // what the CLI calls the conversation, or a hash of its first prompt
	system string
	stream bool
	tools  map[string]bool // offered tools; true when the tool is free-form
	turns  []turn
	body   []byte // as it came
}

// add appends a turn. Items of one speaker in a row are one turn, because the
// Responses API lists a model's reasoning, text and calls as separate items.
func (c *conversation) add(who speaker, text string, calls ...string) {
	if n := len(c.turns); n > 0 && c.turns[n-1].who == who && who != user {
		last := &c.turns[n-1]
		last.text = join(last.text, text)
		last.calls = append(last.calls, calls...)
		return
	}
	c.turns = append(c.turns, turn{who, text, calls})
}

func (c *conversation) finish(key string) {
	if key == "" {
		for _, t := range c.turns {
			if t.who == user {
				sum := sha256.Sum256([]byte(t.text))
				key = hex.EncodeToString(sum[:8])
				break
			}
		}
	}
	c.key = key
}

// addUser adds what a person typed. CLIs wrap their own context in tagged user
// messages; those are not prompts, but the note that a turn was interrupted ends
// the script it belonged to.
func (c *conversation) addUser(texts ...string) {
	for _, text := range texts {
		c.addPrompt(text)
	}
}

func (c *conversation) addPrompt(text string) {
	if strings.Contains(text, "<turn_aborted>") || strings.HasPrefix(text, "[Request interrupted by user") {
		c.turns = append(c.turns, turn{who: user, text: interrupted})
		return
	}
	text = strings.TrimSpace(dropTagged(text, reminder))
	for _, context := range []string{"<environment_context>", "<user_instructions>", "<permissions", "<skills", "<collaboration_mode>", "# AGENTS.md"} {
		if strings.HasPrefix(text, context) {
			return
		}
	}
	if text != "" {
		c.turns = append(c.turns, turn{who: user, text: text})
	}
}

// interrupted stands in the history where a CLI noted an interrupt.
const interrupted = "\x00interrupted"

// reminder is the tag in which claude sends the model what nobody typed.
const reminder = "system-reminder"

// cutSteers takes the messages out of text that came while the model worked.
// Claude sends them inside the result of the tool they came with, between a
// fixed opening and a paragraph of advice, in a reminder or without one.
func cutSteers(text string) (rest string, steers []string) {
	notes := strings.Split(text, "The user sent a new message while you were working:\n")
	for _, note := range notes[1:] {
		note, _, _ = strings.Cut(note, "</"+reminder+">")
		note, _, _ = strings.Cut(note, "<"+reminder+">")
		note = strings.TrimSpace(note)
		if end := strings.LastIndex(note, "\n\n"); end >= 0 {
			note = note[:end]
		}
		steers = append(steers, note)
	}
	return notes[0], steers
}

func dropTagged(text, tag string) string {
	for {
		start := strings.Index(text, "<"+tag+">")
		if start < 0 {
			return text
		}
		end := strings.Index(text[start:], "</"+tag+">")
		if end < 0 {
			return text[:start]
		}
		text = text[:start] + text[start+end+len("</"+tag+">"):]
	}
}

// workdir is the directory the CLI named to the model, if it did.
func (c *conversation) workdir() string {
	for _, text := range append([]string{c.system}, firstTexts(c.turns)...) {
		for _, mark := range []string{"orking directory: ", "<cwd>"} {
			if _, after, ok := strings.Cut(text, mark); ok {
				line, _, _ := strings.Cut(after, "\n")
				line, _, _ = strings.Cut(line, "</cwd>")
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

func firstTexts(turns []turn) []string {
	var texts []string
	for _, t := range turns {
		if t.who == user {
			texts = append(texts, t.text)
		}
	}
	return texts
}

// plainText reads the three shapes content comes in: a string, a list of parts
// with text, or nothing.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		var object struct {
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(raw, &object) == nil && len(object.Content) > 0 {
			return plainText(object.Content)
		}
		return ""
	}
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}
