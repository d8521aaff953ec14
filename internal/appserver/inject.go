package appserver

import (
	"context"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// maxInjected bounds the instructions of a thread that items were added to.
const maxInjected = 256 << 10

// injectItems adds messages to the thread's instructions: no agent's history can
// be written into, and instructions are what every agent reads.
func (s *Server) injectItems(ctx context.Context, c *conn, p *app.InjectItemsParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	if len(p.Items) == 0 {
		return answer{}, thole.Errorf(thole.CodeInvalid, "items must not be empty")
	}
	more := ""
	for i, raw := range p.Items {
		var m struct {
			Type    string `json:"type"`
			Role    string `json:"role"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		if err := strictjson.Unmarshal(raw, &m); err != nil || m.Type == "" {
			return answer{}, thole.Errorf(thole.CodeInvalid, "items[%d] is not a valid response item", i)
		}
		if m.Type != "message" || m.Role == "assistant" {
			return answer{}, thole.Errorf(thole.CodeUnsupported, "item %d: only messages of a user or developer can be added", i)
		}
		for _, part := range m.Content {
			more += "\n\n" + part.Text
		}
	}
	add := func(st event.Settings) event.Settings {
		st.Instructions = strings.TrimSpace(st.Instructions + more)
		return st
	}
	_, err = s.cfg.Threads.Update(ctx, c.who(), id, thread.Update{Change: add}, func(now fold.Thread) error {
		if len(now.Settings.Instructions)+len(more) > maxInjected {
			return thole.Errorf(thole.CodeInvalid, "the thread's instructions would be longer than %d bytes", maxInjected)
		}
		return nil
	})
	return result(app.Empty{}, err)
}
