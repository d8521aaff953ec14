package chat_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/parts"
	"github.com/tholehq/thole/internal/tholetest"
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

func TestOfficialClient(t *testing.T) {
	bin := node(t)
	site := tholetest.New(t).Site()
	cmd := exec.Command(bin, "--test", "--test-timeout=30000", "--test-reporter=spec", "chat.test.mjs")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "THOLE_URL=" + site.URL, "THOLE_TOKEN=" + site.Token}
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
	site := tholetest.New(t).Site()
	cmd := exec.Command(bin, "--test", "--test-timeout=30000", "--test-name-pattern=the server stops", "--test-reporter=spec", "chat.test.mjs")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "THOLE_URL=" + site.URL, "THOLE_TOKEN=" + site.Token, "THOLE_LAST=1"}
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
			if err := site.HTTP.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			cancel()
		}
	}
	if err := cmd.Wait(); err != nil || !cut {
		t.Fatalf("cut=%v: %v", cut, err)
	}
}
