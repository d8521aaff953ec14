package cli

import (
	"bytes"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
)

// Logs show what a terminal would obey, in both formats and of libraries too.
func TestLogsAreShown(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out, errs bytes.Buffer
		env, flush := newEnv(nil, &out, &errs)
		cfg := &config.Config{}
		cfg.Log.Level, cfg.Log.Format = "info", format
		env.logger(cfg).Info("a \u009b b", "err", "c \x1b \u202e\nlevel=ERROR")
		log.New(env.Err, "", 0).Print("tls: \x1b[2J")
		flush()
		if said := errs.String(); strings.ContainsAny(said, "\x1b\u009b\u202e") || strings.Count(said, "\n") != 2 || !strings.Contains(said, `\u202e`) {
			t.Errorf("%s: %q", format, said)
		}
	}
}

// No command prints past the functions that show what others wrote.
func TestEverythingIsPut(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatal(files, err)
	}
	past := regexp.MustCompile(`fmt\.Fprint|fmt\.Print|io\.WriteString\(|os\.Std(out|err)`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if found := past.Find(text); found != nil && f != "put.go" && !strings.HasSuffix(f, "_test.go") {
			t.Errorf("%s has %s: use put, putln or putf", f, found)
		}
	}
}
