//go:build linux

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// httpSide is the HTTP server over the shipped pipeline, with executord in this
// process.
type httpSide struct {
	*tholetest.Site
	t testing.TB
}

func newHTTPSide(t testing.TB) *httpSide { return &httpSide{tholetest.New(t).Site(), t} }

func (s *httpSide) create() thole.ThreadID {
	s.t.Helper()
	th, err := s.Threads.Create(context.Background(), thole.LocalActor, thread.Create{Settings: event.Settings{Provider: "test", Profile: thole.ProfileFull}})
	if err != nil {
		s.t.Fatal(err)
	}
	return th.ID
}

// chat posts a message, reads the stream to its end and returns when the first
// text came.
func (s *httpSide) chat(id thole.ThreadID, text string) time.Duration {
	s.t.Helper()
	body, _ := json.Marshal(map[string]any{"id": id, "messages": []any{map[string]any{"id": "m", "role": "user", "parts": []any{map[string]any{"type": "text", "text": text}}}}})
	from := time.Now()
	r, _ := http.NewRequest("POST", s.URL+"/api/chat", strings.NewReader(string(body)))
	r.Header.Set("Authorization", "Bearer "+s.Token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var first time.Duration
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if first == 0 && strings.Contains(lines.Text(), `"text-delta"`) {
			first = time.Since(from)
		}
	}
	if first == 0 {
		s.t.Fatalf("no text: %s", res.Status)
	}
	return first
}

// contract runs the same turn through a client of the contract, which is warm on
// the thread.
func (s *httpSide) contract() func(thole.ThreadID, string) time.Duration {
	s.t.Helper()
	text, done := make(chan time.Time, 1024), make(chan struct{}, 16)
	c, err := appclient.Dial(bg(s.t), s.Listen("unix://"+filepath.Join(s.t.TempDir(), "h.sock"), ""), appclient.Options{
		Name: "bench", OnNotification: func(n appclient.Notification) {
			switch n.Method {
			case "item/agentMessage/delta":
				text <- time.Now()
			case "turn/completed":
				done <- struct{}{}
			}
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return func(thread thole.ThreadID, prompt string) time.Duration {
		s.t.Helper()
		if _, err := c.Resume(bg(s.t), app.ThreadResumeParams{ThreadID: string(thread), ExcludeTurns: true}); err != nil {
			s.t.Fatal(err)
		}
		from := time.Now()
		if _, err := c.StartTurn(bg(s.t), app.TurnStartParams{ThreadID: string(thread), Input: appclient.Text(prompt)}); err != nil {
			s.t.Fatal(err)
		}
		first := (<-text).Sub(from)
		<-done
		for len(text) > 0 {
			<-text
		}
		// The other side must not pay for this one's subscription.
		if err := c.Unsubscribe(bg(s.t), string(thread)); err != nil {
			s.t.Fatal(err)
		}
		return first
	}
}
