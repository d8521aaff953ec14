package turnstart

import (
	"context"
	"fmt"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// NewThread waits on a server until a terminal made a conversation, and returns
// it. Hidden helpers, forks and sub-agents are not it. The server is our own and
// only the terminal and we reach it.
func NewThread(ctx context.Context, a attachment.Attachment) (thole.ThreadID, error) {
	found := make(chan string, 1)
	tell := func(t wireThread) {
		if !t.conversation() {
			return
		}
		select {
		case found <- t.ID:
		default:
		}
	}
	o := Options()
	o.OnNotification = func(n appclient.Notification) {
		if n.Method == "thread/started" {
			var p struct {
				Thread wireThread `json:"thread"`
			}
			if strictjson.Unmarshal(n.Params, &p) == nil {
				tell(p.Thread)
			}
		}
	}
	dial, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	client, err := appclient.Dial(dial, a.Address, o)
	if err != nil {
		return "", fmt.Errorf("connect to the app-server: %w", err)
	}
	defer client.Close()
	if err := keeper.Serves(&a, client.PeerPID()); err != nil {
		return "", err
	}
	if err := loaded(dial, client, tell); err != nil {
		return "", err
	}
	select {
	case id := <-found:
		return thole.ThreadID(id), nil
	case <-client.Done():
		return "", fmt.Errorf("the app-server's connection ended before a thread was made")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// loaded reports the threads that were there before the connection was.
func loaded(ctx context.Context, c *appclient.Client, tell func(wireThread)) error {
	var list app.LoadedListResult
	if err := c.Call(ctx, "thread/loaded/list", params{}, &list); err != nil {
		return err
	}
	for _, id := range list.Data {
		var out struct {
			Thread wireThread `json:"thread"`
		}
		switch err := c.Call(ctx, "thread/read", params{"threadId": id}, &out); {
		case err == nil:
			tell(out.Thread)
		case !refused(err): // else it is gone already
			return err
		}
	}
	return nil
}

// conversation distinguishes what a user began from everything else. Who made it cannot
// be asked: a server names its first client as the originator of all threads.
func (t wireThread) conversation() bool {
	return t.unfit() == "" && (t.ForkedFromID == nil || *t.ForkedFromID == "") && (t.ThreadSource == nil || *t.ThreadSource == "user")
}
