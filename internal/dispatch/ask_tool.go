package dispatch

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
)

// callItemWait is how long a call of a client's tool waits for the item that shows it:
// agents report what they do and do it by different ways.
const callItemWait = 2 * time.Second

// callItem is the item that shows a call, "" when its agent did not report it in time.
func (w *worker) callItem(ctx context.Context, sub *thread.Subscription, call event.ToolCall) thole.ItemID {
	late := time.NewTimer(callItemWait)
	defer late.Stop()
	for {
		page, err := w.cfg.Threads.Items(ctx, thole.SystemActor, w.lease.Thread, w.lease.Turn, thread.PageParams{Limit: 20, Desc: true})
		if err != nil {
			return ""
		}
		asks, err := w.cfg.Threads.Asks(ctx, thole.SystemActor, w.lease.Thread, false)
		if err != nil {
			return ""
		}
		for _, it := range page.Items {
			taken := slices.ContainsFunc(asks, func(a fold.AskRecord) bool { return a.Ask.Item == it.Item.ID })
			if it.Open && !taken && isCall(it.Item, call) {
				return it.Item.ID
			}
		}
		select {
		case <-ctx.Done():
			return ""
		case <-late.C:
			return ""
		case _, ok := <-sub.Events:
			if !ok {
				return ""
			}
		}
	}
}

// isCall reports whether an item is a call with the same input.
func isCall(it event.Item, call event.ToolCall) bool {
	t := it.Tool
	if it.Kind != event.ItemTool || t == nil || t.Server != "" || t.Name != call.Name || t.Namespace != call.Namespace {
		return false
	}
	return sameJSON(t.Input, call.Input)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return strictjson.Unmarshal(a, &x) == nil && strictjson.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// withdraw takes back a call that nobody waits for any more: its agent gave it up, or its
// turn is taken up again. One that is settled stays as it is.
func (w *worker) withdraw(ctx context.Context, ids ...thole.AskID) {
	asks, err := w.cfg.Threads.Asks(ctx, thole.SystemActor, w.lease.Thread, true)
	if err != nil {
		return // it expires
	}
	for _, a := range asks {
		if a.Turn != w.lease.Turn || a.Ask.Kind != event.AskTool || !ours(a.Ask) || len(ids) > 0 && !slices.Contains(ids, a.Ask.ID) {
			continue
		}
		if w.own.has(a.Ask.ID) {
			continue // a repeat of the call waits for it
		}
		err := w.cfg.Threads.Apply(ctx, w.ref(""), []event.Event{{
			ID: provider.StableID[thole.EventID]("withdrawn", string(a.Ask.ID)), Kind: event.AskResolved, Turn: w.lease.Turn, Time: w.cfg.Now().UTC(),
			Data: event.Data{AskID: a.Ask.ID},
		}})
		if err != nil {
			w.log.Debug("withdraw call", "turn", w.lease.Turn, "thread", w.lease.Thread, "err", err)
		}
	}
}
