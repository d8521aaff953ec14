package chat_test

import (
	"bufio"
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
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
	"github.com/tholehq/thole/internal/testkit/parts"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/thread/runner"
)

// node finds node and the installed package, or ends the test.
func node(t *testing.T) string {
	t.Helper()
	bin, err := exec.LookPath("node")
	if err == nil {
		if _, err = os.Stat("node_modules/ai/package.json"); err != nil {
			cmd := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
			cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
			err = cmd.Run()
		}
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the ai package: %v", err)
		}
		t.Skipf("the ai package: %v (npm ci in test/e2e/chat)", err)
	}
	parts.Use(t, "ai", "7.0.169")
	return bin
}

// serve starts a server on a real store with the scripted agent.
func serve(t *testing.T) (server *httpapi.Server, url, token string) {
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
	if token, _, err = sessions.NewToken(ctx, thole.LocalUser, "test", 0); err != nil {
		t.Fatal(err)
	}
	server, err = httpapi.New(httpapi.Config{
		Threads: threads, Index: db.Index(), Keys: db.Idempotency(), Sessions: sessions, Cookies: session.NewCookies(home, false), Guard: guard.New(guard.Config{}),
		Providers: func() []provider.Info { return []provider.Info{testprovider.New().Probe(ctx)} }, Version: "test",
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
	return server, web.URL, token
}

func TestOfficialClient(t *testing.T) {
	bin := node(t)
	_, url, token := serve(t)
	cmd := exec.Command(bin, "--test", "--test-timeout=30000", "--test-reporter=spec", "chat.test.mjs")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "THOLE_URL=" + url, "THOLE_TOKEN=" + token}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// TestServerStops shuts the server down in the middle of an answer: the client
// must see a broken line, not a short success.
func TestServerStops(t *testing.T) {
	bin := node(t)
	server, url, token := serve(t)
	cmd := exec.Command(bin, "--test", "--test-timeout=30000", "--test-name-pattern=the server stops", "--test-reporter=spec", "chat.test.mjs")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "THOLE_URL=" + url, "THOLE_TOKEN=" + token, "THOLE_LAST=1"}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	cut := false
	for lines.Scan() {
		t.Log(lines.Text())
		if strings.Contains(lines.Text(), "CUT ME") {
			cut = true
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			if err := server.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			cancel()
		}
	}
	if err := cmd.Wait(); err != nil || !cut {
		t.Fatalf("cut=%v: %v", cut, err)
	}
}
