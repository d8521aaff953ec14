package turnstart

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/channel/turnend"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// wireThread is a thread of any Codex server.
type wireThread struct {
	app.Thread
	Source json.RawMessage `json:"source"` // a word, and an object where a sub-agent has it
}

// idle: a turn may start. A failed turn leaves systemError until the next one.
func (t wireThread) idle() bool {
	return t.Status.Type == app.StatusIdle || t.Status.Type == app.StatusSystemError
}

// unfit says why the thread is no user's conversation.
func (t wireThread) unfit() string {
	switch {
	case t.Ephemeral:
		return "the thread is ephemeral: nothing can be proven of it later"
	case t.ThreadSource != nil && *t.ThreadSource == "thread_title":
		return "the thread is a hidden helper of the terminal"
	case t.ParentThreadID != nil && *t.ParentThreadID != "":
		return "the thread belongs to a sub-agent"
	}
	return ""
}

type wireView struct {
	Thread wireThread `json:"thread"`
	attachment.Settings
}

// wireItem is what is read of an item. Servers have kinds that nobody here knows:
// a history that holds one must stay readable.
type wireItem struct {
	Type     string  `json:"type"`
	ClientID *string `json:"clientId"`
}

func (i wireItem) marked(marker string) bool {
	return i.Type == app.ItemUserMessage && i.ClientID != nil && *i.ClientID == marker
}

type wireItems struct {
	Data []struct {
		TurnID string   `json:"turnId"`
		Item   wireItem `json:"item"`
	} `json:"data"`
	app.Page
}

type wireTurns struct {
	Data []turnend.Read `json:"data"`
	app.Page
}

// params with a type would hide what is sent; the wire has a dozen small objects.
type params = map[string]any

// maxPages bounds a search through a thread's history, 100 entries each.
const maxPages = 100

var errTooLong = errors.New("the thread's history is too long to search")

// archive is a thread as a server stores it. It is read with any connection to a
// server of the thread's home.
type archive struct {
	client *appclient.Client
	thread string
	queued bool // the server has the queue
}

func (a archive) call(ctx context.Context, method string, p params, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	p["threadId"] = a.thread
	return a.client.Call(ctx, method, p, out)
}

// refused reports whether the server itself said no: then nothing happened.
func refused(err error) bool {
	var e *appclient.Error
	return errors.As(err, &e)
}

func (a archive) status(ctx context.Context) (wireThread, error) {
	var out struct {
		Thread wireThread `json:"thread"`
	}
	err := a.call(ctx, "thread/read", params{}, &out)
	return out.Thread, err
}

func (a archive) queue(ctx context.Context) ([]app.QueuedSubmission, error) {
	if !a.queued {
		return nil, nil
	}
	var all []app.QueuedSubmission
	p := params{}
	for range maxPages {
		var out app.QueueListResult
		if err := a.call(ctx, "thread/queue/list", p, &out); err != nil {
			return nil, err
		}
		all = append(all, out.Data...)
		if out.NextCursor == nil || *out.NextCursor == "" {
			return all, nil
		}
		p["cursor"] = *out.NextCursor
	}
	return nil, errTooLong
}

// entry is the queued message that carries the marker, "" if none does.
func (a archive) entry(ctx context.Context, marker string) (string, error) {
	queue, err := a.queue(ctx)
	for _, q := range queue {
		if q.ClientUserMessageID == marker {
			return q.ID, nil
		}
	}
	return "", err
}

// drop takes an entry back. true: it was there, and will never start.
func (a archive) drop(ctx context.Context, entry string) (bool, error) {
	var out app.DeletedResult
	err := a.call(ctx, "thread/queue/delete", params{"queuedSubmissionId": entry}, &out)
	return out.Deleted, err
}

// place is where a marked message is in the thread's history.
type place struct {
	turn   string // "": nowhere
	opened bool   // it is the first message of its turn
}

// find looks for the marker, newest first, and at the beginning of its turn.
func (a archive) find(ctx context.Context, marker string) (place, error) {
	p := params{"limit": 100, "sortDirection": "desc"}
	for range maxPages {
		var page wireItems
		if err := a.call(ctx, "thread/items/list", p, &page); err != nil {
			return place{}, err
		}
		for _, d := range page.Data {
			if d.Item.marked(marker) {
				opened, err := a.opened(ctx, d.TurnID, marker)
				return place{turn: d.TurnID, opened: opened}, err
			}
		}
		if page.NextCursor == nil || *page.NextCursor == "" {
			return place{}, nil
		}
		p["cursor"] = *page.NextCursor
	}
	return place{}, errTooLong
}

// opened reports whether the marked message is the first one of a turn.
func (a archive) opened(ctx context.Context, turn, marker string) (bool, error) {
	var page wireItems
	if err := a.call(ctx, "thread/items/list", params{"turnId": turn, "limit": 20, "sortDirection": "asc"}, &page); err != nil {
		return false, err
	}
	for _, d := range page.Data {
		if d.Item.Type == app.ItemUserMessage {
			return d.Item.marked(marker), nil
		}
	}
	return false, nil
}

// turn reads a turn of the history once, which is no verdict about it; nil: it is
// not there.
func (a archive) turn(ctx context.Context, id string) (*turnend.Read, error) {
	p := params{"limit": 20, "sortDirection": "desc", "itemsView": "notLoaded"}
	for range maxPages {
		var page wireTurns
		if err := a.call(ctx, "thread/turns/list", p, &page); err != nil {
			return nil, err
		}
		for i := range page.Data {
			if page.Data[i].ID() == id {
				return &page.Data[i], nil
			}
		}
		if page.NextCursor == nil || *page.NextCursor == "" {
			return nil, nil
		}
		p["cursor"] = *page.NextCursor
	}
	return nil, errTooLong
}

// userMessage reads a notification about an item.
func userMessage(raw json.RawMessage) (thread, turn string, item wireItem) {
	var n struct {
		ThreadID string   `json:"threadId"`
		TurnID   string   `json:"turnId"`
		Item     wireItem `json:"item"`
	}
	_ = strictjson.Unmarshal(raw, &n)
	return n.ThreadID, n.TurnID, n.Item
}

// turnOf reads a notification about a thread and a turn of it, if any.
func turnOf(raw json.RawMessage) (thread string, turn turnend.Read) {
	var n struct {
		ThreadID string       `json:"threadId"`
		Turn     turnend.Read `json:"turn"`
	}
	_ = strictjson.Unmarshal(raw, &n)
	return n.ThreadID, n.Turn
}
