package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
)

func TestDemoModelServesUntilItIsStopped(t *testing.T) {
	script := filepath.Join(t.TempDir(), "scripts.json")
	if err := os.WriteFile(script, []byte(`{"hi":{"text":"from the file"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, in := io.Pipe()
	cmd := newDemoModel(&Env{Out: in, Err: io.Discard, JSON: true})
	cmd.SetArgs([]string{"--script", script})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx); _ = in.Close() }()
	var told struct{ URL string }
	if err := json.NewDecoder(out).Decode(&told); err != nil {
		t.Fatal(err)
	}
	body := `{"messages":[{"role":"user","content":"sim: script hi"}]}`
	resp, err := http.Post(told.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || !strings.Contains(string(answer), "from the file") {
		t.Fatalf("answered %s, %v", answer, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatalf("stopped with %v", err)
	}
}

func TestDemoModelRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"an address beyond loopback": {"--listen", "0.0.0.0:0"},
		"a script that is no JSON":   {"--script", os.DevNull},
	} {
		cmd := newDemoModel(&Env{Out: io.Discard, Err: io.Discard})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(t.Context())
		if thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
