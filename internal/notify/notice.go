package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/plain"
)

// What is sent.
const (
	Done   = "done"
	Failed = "failed"
	Ask    = "ask"
)

// Notice is what a target gets. Its texts are one line each, without control characters.
type Notice struct {
	ID     string    `json:"id"` // the same in every try
	Event  string    `json:"event"`
	Time   time.Time `json:"time"`
	Thread string    `json:"thread"`
	Turn   string    `json:"turn,omitempty"`
	Title  string    `json:"title"`
	URL    string    `json:"url,omitempty"`
	Agent  string    `json:"agent,omitempty"`
	// Seconds is how long a turn took that is over.
	Seconds float64    `json:"seconds,omitempty"`
	Ask     *NoticeAsk `json:"ask,omitempty"`
	Error   string     `json:"error,omitempty"` // the code
	// Detail is what the agent said, asks or failed with, where that is wanted.
	Detail string `json:"detail,omitempty"`
}

// NoticeAsk is the question that waits.
type NoticeAsk struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
}

const (
	titleRunes  = 200
	detailRunes = 2000
)

func (n Notice) body() []byte {
	b, err := json.Marshal(n)
	if err != nil {
		panic(err) // strings and numbers
	}
	return b
}

// story is an event that becomes a notice when the first target gets to it.
type story struct {
	kind  string
	event event.Event
	of    *Notifier

	once   sync.Once
	notice Notice
	ok     bool
}

func (n *Notifier) story(kind string, e event.Event) *story {
	return &story{kind: kind, event: e, of: n}
}

func (s *story) read(ctx context.Context) (Notice, bool) {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, lookup)
		defer cancel()
		s.notice, s.ok = s.of.describe(ctx, s.kind, s.event)
	})
	return s.notice, s.ok
}

// describe reports false for what nobody wants to know. A thread that cannot be
// read is sent by its id.
func (n *Notifier) describe(ctx context.Context, kind string, e event.Event) (Notice, bool) {
	out := Notice{ID: string(e.ID), Event: kind, Time: e.Time, Thread: string(e.Thread), Turn: string(e.Turn), Title: string(e.Thread)}
	if n.cfg.Page != "" {
		out.URL = n.cfg.Page + "/c/" + url.PathEscape(out.Thread)
	}
	t, err := n.cfg.Threads.Get(ctx, n.cfg.Actor, e.Thread)
	switch {
	case gone(err):
		return out, false
	case err != nil:
		n.cfg.Log.Warn("read the thread of a notification", "thread", e.Thread, "err", err)
	case t.Parent != "" && kind != Ask: // the agent that made it hears of it
		return out, false
	default:
		out.Title, out.Agent = cmp.Or(line(cmp.Or(t.Name, t.Preview), titleRunes), out.Title), line(t.Settings.Provider, titleRunes)
	}
	if kind == Ask {
		out.Ask = &NoticeAsk{ID: string(e.Ask.ID), Kind: string(e.Ask.Kind)}
		if n.cfg.Details {
			out.Detail = line(question(*e.Ask), detailRunes)
		}
		return out, true
	}
	turn, err := n.cfg.Threads.Turn(ctx, n.cfg.Actor, e.Thread, e.Turn)
	if err != nil {
		return out, true
	}
	took := e.Time.Sub(turn.Created) // as its user waited for it
	out.Seconds = max(0, took).Round(time.Millisecond).Seconds()
	if kind == Done && took < n.cfg.Least {
		return out, false
	}
	if turn.Error != nil {
		out.Error = string(turn.Error.Code)
	}
	if n.cfg.Details {
		out.Detail = line(n.said(ctx, turn), detailRunes)
	}
	return out, true
}

func gone(err error) bool {
	var e *thole.Error
	return errors.As(err, &e) && (e.Code == thole.CodeNotFound || e.Code == thole.CodeGone)
}

// said is why a turn failed, or the agent's last message.
func (n *Notifier) said(ctx context.Context, turn fold.Turn) (text string) {
	if turn.Error != nil {
		return turn.Error.Message
	}
	items, err := n.cfg.Threads.TurnItems(ctx, n.cfg.Actor, turn.Thread, []thole.TurnID{turn.ID}, true)
	if err != nil {
		return ""
	}
	for _, i := range items[turn.ID] {
		if i.Item.Kind == event.ItemMessage && i.Item.Parent == "" {
			text = i.Item.Text
		}
	}
	return text
}

func question(a event.Ask) string {
	parts := []string{a.Title, a.Command}
	for _, q := range a.Questions {
		parts = append(parts, q.Text)
	}
	for _, c := range a.Changes {
		parts = append(parts, c.Path)
	}
	return strings.Join(parts, "\n")
}

// line is text that others wrote, as one line that no terminal, shell script or reader is
// led astray by: whatever is not shown is gone.
func line(text string, most int) string {
	text = strings.ToValidUTF8(text, "")
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteByte(' ')
		case plain.Line(string(r)) == string(r):
			b.WriteRune(r)
		}
	}
	text = strings.Join(strings.Fields(b.String()), " ")
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most-1]) + "…"
	}
	return text
}
