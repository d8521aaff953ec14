package gateway_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/gateway"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// spentLedger refuses every call.
type spentLedger struct{ asked atomic.Int32 }

const spentText = "budget of project demo is spent until tomorrow"

func (l *spentLedger) Begin(context.Context, gateway.Call) (string, error) {
	l.asked.Add(1)
	return "", thole.Errorf(thole.CodeBudgetExceeded, spentText)
}

func (*spentLedger) End(context.Context, string, gateway.Result) error { return nil }

// TestSpentBudgetEndsRealClients: each CLI asks once, ends at once with our words, and does
// not talk of a login. A status that one of them retries would show in the count.
func TestSpentBudgetEndsRealClients(t *testing.T) {
	for _, c := range []struct {
		name    string
		dialect gateway.Dialect
		calls   int32 // one of them asks for a title at the same time
		command func(t *testing.T, home, base string) *exec.Cmd
	}{
		{"claude", gateway.Anthropic, 1, func(t *testing.T, home, base string) *exec.Cmd {
			cmd := exec.Command(lab.Claude(t), "-p", "--model", "claude-sonnet-4-5", "--output-format", "json", "hello")
			cmd.Env = []string{"ANTHROPIC_BASE_URL=" + base + "/r", "ANTHROPIC_AUTH_TOKEN=" + gateway.GoodToken, "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1"}
			return cmd
		}},
		{"codex", gateway.Responses, 1, func(t *testing.T, home, base string) *exec.Cmd {
			config := fmt.Sprintf("model = \"gpt-5.5\"\nmodel_provider = \"gw\"\nweb_search = \"disabled\"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n[model_providers.gw]\nname = \"gw\"\nbase_url = %q\nwire_api = \"responses\"\nenv_key = \"K\"\n", base+"/r/v1")
			if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(lab.Codex(t), "exec", "--skip-git-repo-check", "--json", "hello")
			cmd.Env = []string{"CODEX_HOME=" + home, "K=" + gateway.GoodToken}
			return cmd
		}},
		{"opencode", gateway.Chat, 2, func(t *testing.T, home, base string) *exec.Cmd {
			cmd := exec.Command(lab.Opencode(t), "run", "--format", "json", "hello")
			cmd.Env = []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
				`OPENCODE_CONFIG_CONTENT={"autoupdate":false,"share":"disabled","snapshot":false,"model":"gw/m","small_model":"gw/m","enabled_providers":["gw"],"provider":{"gw":{"npm":"@ai-sdk/openai-compatible","name":"gw","options":{"baseURL":"` + base + `/r/v1","apiKey":"` + gateway.GoodToken + `"},"models":{"m":{"name":"m","tool_call":true,"limit":{"context":128000,"output":8192}}}}}}`}
			return cmd
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ledger := &spentLedger{}
			home := t.TempDir()
			cmd := c.command(t, home, gateway.Forwarded(t, c.dialect, ledger))
			cmd.Env = append(cmd.Env, "HOME="+home, "PATH=/usr/bin:/bin")
			cmd.Dir = t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
			out, err := cmd.CombinedOutput()
			if !stop() {
				t.Fatalf("it did not end: %s", out)
			}
			if err == nil || !strings.Contains(string(out), spentText) {
				t.Errorf("%v, %s", err, out)
			}
			if text := strings.ToLower(string(out)); strings.Contains(text, "log in") || strings.Contains(text, "/login") {
				t.Errorf("it asks for a login: %s", out)
			}
			if n := ledger.asked.Load(); n < 1 || n > c.calls {
				t.Errorf("it asked %d times", n)
			}
		})
	}
}
