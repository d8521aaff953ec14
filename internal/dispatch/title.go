package dispatch

import (
	"context"
	"encoding/json"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// title answers a turn that asks for the title of a message. No executor is started and no
// model is called for it: the title is the name that thole gives a thread.
func (w *worker) title(ctx context.Context, t fold.Turn) error {
	text, err := titleAnswer(t)
	if err != nil {
		return err
	}
	now := w.cfg.Now().UTC()
	said := event.Item{ID: provider.StableID[thole.ItemID]("title", string(t.ID)), Kind: event.ItemMessage, State: event.StateCompleted, Text: text, Stamp: thole.Stamp{Started: now, Ended: now}}
	return w.cfg.Threads.Apply(ctx, w.ref(t.Executor), []event.Event{
		{ID: provider.StableID[thole.EventID]("title-said", string(t.ID)), Kind: event.ItemCompleted, Turn: t.ID, Time: now, Data: event.Data{Item: &said, ItemID: said.ID}},
		{ID: provider.StableID[thole.EventID]("titled", string(t.ID)), Kind: event.TurnEnded, Turn: t.ID, Time: now, Data: provider.Ended{Outcome: thole.OutcomeCompleted}.Data()},
	})
}

// promptMarks stand before the message in what the TUI asks.
var promptMarks = []string{"\nUser prompt:\n", "\nRecent conversation messages:\n"}

// titleAnswer is the title in the form that the turn wants.
func titleAnswer(t fold.Turn) (string, error) {
	var text string
	for _, in := range t.Input {
		text += in.Text
	}
	for _, mark := range promptMarks {
		if _, message, ok := strings.Cut(text, mark); ok {
			text = message
			break
		}
	}
	title := fold.Title(text)
	if title == "" {
		title = "Untitled"
	}
	if t.Schema == nil {
		return title, nil
	}
	name, limit, ok := onlyText(t.Schema)
	if !ok {
		return "", thole.Errorf(thole.CodeInvalid, "a title is one text; the turn's output schema asks for something else").
			WithHint("start a thread without threadSource to have an agent answer it")
	}
	answer, err := json.Marshal(map[string]string{name: shortened(title, limit)})
	return string(answer), err
}

// onlyText is the one member of a schema of an object with a text, and how long it may be.
func onlyText(schema json.RawMessage) (name string, limit int, ok bool) {
	var s struct {
		Properties map[string]struct {
			Type      json.RawMessage `json:"type"`
			MaxLength int             `json:"maxLength"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if strictjson.Unmarshal(schema, &s) != nil || len(s.Properties) != 1 {
		return "", 0, false
	}
	for name, p := range s.Properties {
		return name, p.MaxLength, string(p.Type) == `"string"` && len(s.Required) <= 1
	}
	return "", 0, false
}

// shortened is a title of at most limit characters, 0 for any number, cut at a word.
func shortened(title string, limit int) string {
	runes := []rune(title)
	if limit <= 0 || len(runes) <= limit {
		return title
	}
	cut := string(runes[:limit-1])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ") + "…"
}
