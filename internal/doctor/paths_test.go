package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
)

func TestCheckPaths(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Home = filepath.Join(dir, "home")
	tools := filepath.Join(dir, "tools")
	if err := os.Mkdir(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	if f := checkPaths(&cfg); !f.OK || !strings.Contains(f.Found, "names none") {
		t.Errorf("%+v", f)
	}
	cfg.Executor.Paths = []string{tools}
	if f := checkPaths(&cfg); !f.OK || f.Found != "agents read "+tools {
		t.Errorf("%+v", f)
	}
	if err := os.WriteFile(filepath.Join(tools, ".netrc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := checkPaths(&cfg); f.OK || !strings.Contains(f.Problem, ".netrc") || f.Fix == "" {
		t.Errorf("%+v", f)
	}
	cfg.Executor.Paths, cfg.Egress.CAFile = nil, filepath.Join(dir, "none")
	if f := checkPaths(&cfg); f.OK || !strings.Contains(f.Problem, "egress.ca_file") {
		t.Errorf("%+v", f)
	}
}
