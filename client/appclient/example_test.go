package appclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"path/filepath"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/protocol/app"
)

// A program starts a thread, gives it a message, says yes to what the agent asks
// and prints what it answers. Here the server is a real one with a scripted agent;
// yours is at unix:// and the path of thole.sock in the home.
func Example() {
	var s stage
	defer s.end()
	addr := tholetest.New(&s).Listen("unix://"+filepath.Join(s.TempDir(), "s"), "")

	ctx := context.Background()
	ended := make(chan struct{})
	c, err := appclient.Dial(ctx, addr, appclient.Options{
		Name: "example",
		OnRequest: func(r *appclient.Request) {
			fmt.Println("asked:", r.Method)
			_ = r.Reply(app.ApprovalAnswer{Decision: []byte(`"accept"`)})
		},
		OnNotification: func(n appclient.Notification) {
			switch n.Method {
			case "item/completed":
				var done app.ItemDone
				if json.Unmarshal(n.Params, &done) == nil && done.Item.Type == app.ItemAgentMessage {
					fmt.Println("agent:", *done.Item.Text)
				}
			case "turn/completed":
				close(ended)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	thread, err := c.StartThread(ctx, app.ThreadStartParams{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.StartTurn(ctx, app.TurnStartParams{ThreadID: thread.Thread.ID, Input: appclient.Text("sim: run true ;; say all tests pass")})
	if err != nil {
		log.Fatal(err)
	}
	<-ended
	// Output:
	// asked: item/commandExecution/requestApproval
	// agent: all tests pass
}
