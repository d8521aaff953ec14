package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/mcp/mcpclient"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// serve answers the calls of a thread's tools while the bridge is the thread's.
func (b *bridge) serve(id thole.ThreadID) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var calls sync.WaitGroup
	defer calls.Wait()
	defer cancel()
	asked := map[thole.AskID]context.CancelFunc{}
	begin := func(a event.Ask) {
		if asked[a.ID] != nil || !b.answers(a) {
			return
		}
		one, end := context.WithCancel(ctx)
		asked[a.ID] = end
		calls.Go(func() { b.answer(one, id, a) })
	}
	for b.conn.srv.bridgeOf(id) == b {
		in, err := b.conn.srv.cfg.Threads.Subscribe(ctx, b.conn.who(), id, thread.SubscribeOptions{NoDeltas: true})
		if err != nil {
			return
		}
		for _, r := range in.Snapshot.Asks {
			begin(r.Ask)
		}
		over := b.conn.follow(in, func(batch *thread.Batch) bool {
			for _, e := range batch.Events {
				switch {
				case e.Kind == event.AskRequested && e.Data.Ask != nil:
					begin(*e.Data.Ask)
				case e.Kind == event.AskResolved && asked[e.Data.AskID] != nil:
					asked[e.Data.AskID]()
					delete(asked, e.Data.AskID)
				}
			}
			return b.conn.srv.bridgeOf(id) == b
		})
		slow := errors.Is(in.Err(), thread.ErrSlow)
		in.Close()
		if over || !slow {
			return
		}
	}
}

// answer calls a tool and makes what it returned the answer of the ask. A failure is an
// answer too, which the model reads.
func (b *bridge) answer(ctx context.Context, id thole.ThreadID, a event.Ask) {
	link := b.tools[a.Tool.Name]
	wait, cancel := context.WithTimeout(ctx, link.wait)
	defer cancel()
	content, failed, err := link.at.Call(wait, link.tool, a.Tool.Input)
	if ctx.Err() != nil { // it was settled, or the client went: one that comes back is asked
		return
	}
	out := app.ToolCallAnswer{Success: err == nil && !failed, ContentItems: []app.ToolContent{}}
	if err != nil {
		out.ContentItems = append(out.ContentItems, app.ToolContent{Type: app.ToolText, Text: err.Error()})
	}
	for _, p := range content {
		out.ContentItems = append(out.ContentItems, part(p))
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return
	}
	b.conn.answer(id, a.ID, raw)
}

// part is a part of a tool's result in the shape of the contract.
func part(p mcpclient.Content) app.ToolContent {
	data := "data:" + p.MIME + ";base64," + p.Data
	switch p.Type {
	case "text":
		return app.ToolContent{Type: app.ToolText, Text: p.Text}
	case "image":
		return app.ToolContent{Type: app.ToolImage, ImageURL: data}
	case "audio":
		return app.ToolContent{Type: app.ToolAudio, AudioURL: data}
	}
	return app.ToolContent{Type: app.ToolText, Text: string(p.Raw)}
}
