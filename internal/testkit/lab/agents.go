package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Versions of the agent CLIs. scripts/lab gets the same ones; a test compares.
const (
	CodexVersion     = "0.166.0"
	ClaudeVersion    = "2.1.325"
	ClaudeOldVersion = "2.1.197"
	OpencodeVersion  = "1.18.33"
)

// agent is one CLI, looked for once in a test binary.
type agent struct {
	part    string
	install string
	version string
	pattern string

	once sync.Once
	path string
	err  error
}

var (
	codex     = agent{part: "codex", install: "codex", version: CodexVersion, pattern: "codex-%s/node_modules/@openai/codex/vendor/*/bin/codex"}
	claude    = agent{part: "claude", install: "claude", version: ClaudeVersion, pattern: "claude-%s/node_modules/@anthropic-ai/claude-code-linux-*/claude"}
	claudeOld = agent{part: "claude-old", install: "claude-old", version: ClaudeOldVersion, pattern: "claude-%s/node_modules/@anthropic-ai/claude-code-linux-*/claude"}
	opencode  = agent{part: "opencode", install: "opencode", version: OpencodeVersion, pattern: "opencode-%s/node_modules/opencode-linux-*/bin/opencode"}
)

// Codex returns the path of the native codex binary. Its neighbours, which hold
// its sandbox and search helpers, lie next to it.
func Codex(t testing.TB) string { t.Helper(); return codex.use(t) }

// HasCodex reports whether codex is there, for tests that do more with it than without.
// In CI it must be.
func HasCodex(t testing.TB) bool {
	t.Helper()
	codex.once.Do(func() { codex.path, codex.err = codex.find() })
	if codex.err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("codex: %v", codex.err)
	}
	return codex.err == nil
}

// Claude returns the path of the native claude binary.
func Claude(t testing.TB) string { t.Helper(); return claude.use(t) }

// ClaudeOld returns the path of the oldest claude that thole supports.
func ClaudeOld(t testing.TB) string { t.Helper(); return claudeOld.use(t) }

// Opencode returns the path of the native opencode binary.
func Opencode(t testing.TB) string { t.Helper(); return opencode.use(t) }

func (a *agent) use(t testing.TB) string {
	t.Helper()
	a.once.Do(func() { a.path, a.err = a.find() })
	Need(t, a.part, a.err)
	use(t, a.part, a.version)
	return a.path
}

// handed names the variable by which EveryUser hands a CLI to another user.
func (a *agent) handed() string { return "THOLE_LAB_" + a.part }

func (a *agent) find() (string, error) {
	if path := os.Getenv(a.handed()); path != "" {
		return path, nil
	}
	path, err := cached(fmt.Sprintf(a.pattern, a.version), a.install)
	if err != nil {
		return "", err
	}
	got, err := versionOf(path, "--version")
	if err != nil {
		return "", err
	}
	if got != a.version {
		return "", fmt.Errorf("%s says it is %s, not %s", filepath.Base(path), got, a.version)
	}
	return path, nil
}
