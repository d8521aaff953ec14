package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/guard"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/testprovider"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/runner"
)

// httpSide is the HTTP server over threads that run the scripted agent in this
// process.
type httpSide struct {
	t       testing.TB
	threads *thread.Machine
	url     string
	token   string
}

func newHTTPSide(t testing.TB) *httpSide {
	t.Helper()
	ctx := context.Background()
	db, home := storetest.SQLite(t), t.TempDir()
	threads, err := thread.New(thread.Config{Store: db.Threads()})
	if err != nil {
		t.Fatal(err)
	}
	run, err := runner.New(runner.Config{
		Threads: threads, Providers: []provider.Provider{testprovider.New()}, Instance: "here",
		Place: func(_ context.Context, th thread.Thread) (provider.SessionConfig, error) {
			cfg := provider.SessionConfig{Dir: filepath.Join(home, string(th.ID), "work"), Data: filepath.Join(home, string(th.ID), "data")}
			if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
				return cfg, err
			}
			return cfg, os.MkdirAll(cfg.Data, 0o700)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	threads.Attach(run)
	if err := threads.Start(ctx); err != nil {
		t.Fatal(err)
	}
	sessions := session.New(db.Sessions(), nil)
	token, _, err := sessions.NewToken(ctx, thole.LocalUser, "bench", 0)
	if err != nil {
		t.Fatal(err)
	}
	server, err := httpapi.New(httpapi.Config{
		Threads: threads, Index: db.Index(), Keys: db.Idempotency(), Sessions: sessions, Cookies: session.NewCookies(home, false), Guard: guard.New(guard.Config{}),
		Providers: func() []provider.Info { return []provider.Info{testprovider.New().Probe(ctx)} },
	})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		stop, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_ = server.Shutdown(stop)
		web.Close()
		_ = run.Close(stop)
		_ = threads.Close(stop)
	})
	return &httpSide{t: t, threads: threads, url: web.URL, token: token}
}

func (s *httpSide) create() thole.ThreadID {
	s.t.Helper()
	th, err := s.threads.Create(context.Background(), thole.LocalActor, thread.Create{Settings: thread.Settings{Provider: "test", Profile: thole.ProfileFull}})
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
	r, _ := http.NewRequest("POST", s.url+"/api/chat", strings.NewReader(string(body)))
	r.Header.Set("Authorization", "Bearer "+s.token)
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

// direct runs the same turn on the thread service itself.
func (s *httpSide) direct(id thole.ThreadID, text string) time.Duration {
	s.t.Helper()
	ctx := context.Background()
	sub, err := s.threads.Subscribe(ctx, thole.LocalActor, id, thread.SubscribeOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer sub.Close()
	from := time.Now()
	if _, err := s.threads.StartTurn(ctx, thole.LocalActor, thread.StartTurn{Thread: id, Input: thole.Text(text)}); err != nil {
		s.t.Fatal(err)
	}
	var first time.Duration
	for batch := range sub.Events {
		for _, e := range batch {
			if e.Kind == thread.ItemDelta && first == 0 {
				first = time.Since(from)
			}
			if e.Kind == thread.TurnEnded {
				return first
			}
		}
	}
	s.t.Fatal(fmt.Errorf("the subscription ended: %w", sub.Err()))
	return 0
}
