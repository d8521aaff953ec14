//go:build linux

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/transport/stdio"
)

// bareProcess starts a CLI that ends with the test.
func bareProcess(t testing.TB, path string, cfg provider.SessionConfig, more map[string]string, args ...string) *process.Process {
	t.Helper()
	env := maps.Clone(cfg.Env)
	maps.Copy(env, more)
	p, err := process.Start(process.Spec{Path: path, Args: args, Dir: cfg.Dir, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// waitFor reads lines until one has all words.
func waitFor(t testing.TB, lines *process.Lines, words ...string) string {
	t.Helper()
next:
	for {
		line, err := lines.Next()
		if err != nil {
			t.Fatalf("no %q: %v", words, err)
		}
		for _, w := range words {
			if !bytes.Contains(line, []byte(w)) {
				continue next
			}
		}
		return string(line)
	}
}

// bare is a client that does nothing but start turns and wait for their item.
type bare struct{ item, end chan struct{} }

func (b bare) Request(r *jsonrpc.Request) { _ = r.Error(jsonrpc.Errorf(-32601, "no")) }

func (b bare) Notification(n *jsonrpc.Notification) {
	switch {
	case n.Method == "item/started" && strings.Contains(string(n.Params), `"agentMessage"`):
		b.item <- struct{}{}
	case n.Method == "turn/completed":
		b.end <- struct{}{}
	}
}

func bareCodex(t testing.TB, cfg provider.SessionConfig) func() time.Duration {
	proc := bareProcess(t, lab.Codex(t), cfg, map[string]string{"CODEX_HOME": cfg.Data}, "app-server")
	b := bare{make(chan struct{}, 64), make(chan struct{}, 64)}
	conn := jsonrpc.NewConn(stdio.New(proc.Stdout, proc.Stdin, 0), jsonrpc.Options{Handler: b})
	served := make(chan struct{})
	go func() { defer close(served); _ = conn.Run(context.Background()) }()
	t.Cleanup(func() { proc.Kill(); <-served })
	call := func(method string, params any) json.RawMessage {
		var raw json.RawMessage
		if err := conn.Call(context.Background(), method, params, &raw); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		return raw
	}
	call("initialize", map[string]any{"clientInfo": map[string]string{"name": "bare", "version": "1"}})
	var thread struct{ Thread struct{ ID string } }
	_ = json.Unmarshal(call("thread/start", map[string]any{"cwd": cfg.Dir, "sandbox": "danger-full-access", "approvalPolicy": "never"}), &thread)
	return func() time.Duration {
		began := time.Now()
		call("turn/start", map[string]any{"threadId": thread.Thread.ID, "input": []any{map[string]string{"type": "text", "text": "sim: say hi"}}})
		<-b.item
		took := time.Since(began)
		<-b.end
		return took
	}
}

func bareClaude(t testing.TB, cfg provider.SessionConfig) func() time.Duration {
	proc := bareProcess(t, lab.Claude(t), cfg, map[string]string{"CLAUDE_CONFIG_DIR": cfg.Data, "IS_SANDBOX": "1", "CLAUDE_CODE_ENABLE_TASKS": "0"},
		"--output-format", "stream-json", "--input-format", "stream-json", "--verbose", "--include-partial-messages", "--replay-user-messages",
		"--permission-prompt-tool", "stdio", "--permission-mode", "bypassPermissions", "--model", cfg.Model, "--session-id", uuid.NewString())
	lines := process.NewLines(proc.Stdout)
	say := func(line string) {
		if _, err := io.WriteString(proc.Stdin, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	say(`{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}`)
	waitFor(t, lines, `"control_response"`)
	return func() time.Duration {
		began := time.Now()
		say(`{"type":"user","session_id":"","parent_tool_use_id":null,"message":{"role":"user","content":[{"type":"text","text":"sim: say hi"}]}}`)
		waitFor(t, lines, `"content_block_start"`)
		took := time.Since(began)
		waitFor(t, lines, `"type":"result"`)
		return took
	}
}

func bareOpencode(t testing.TB, cfg provider.SessionConfig) func() time.Duration {
	proc := bareProcess(t, lab.Opencode(t), cfg, map[string]string{"XDG_DATA_HOME": cfg.Data, "XDG_STATE_HOME": cfg.Data, "XDG_CONFIG_HOME": cfg.Data, "XDG_CACHE_HOME": cfg.Data},
		"serve", "--hostname", "127.0.0.1", "--port", "0")
	_, base, _ := strings.Cut(waitFor(t, process.NewLines(proc.Stdout), "listening on "), "listening on ")
	base = strings.TrimSpace(base)
	post := func(path string, body, into any) {
		raw, _ := json.Marshal(body)
		resp, err := http.Post(base+path, "application/json", bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode >= 300 {
			t.Fatalf("%s: %s", path, resp.Status)
		}
		if into != nil {
			_ = json.NewDecoder(resp.Body).Decode(into)
		}
	}
	var session struct{ ID string }
	post("/session", map[string]any{}, &session)
	events, err := http.Get(base + "/event")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = events.Body.Close() })
	lines := process.NewLines(events.Body)
	waitFor(t, lines, "server.connected")
	return func() time.Duration {
		began := time.Now()
		post("/session/"+session.ID+"/prompt_async", map[string]any{"agent": "build", "model": map[string]string{"providerID": "sim", "modelID": modelsim.Model},
			"parts": []any{map[string]string{"type": "text", "text": "sim: say hi"}}}, nil)
		// The prompt is a text part as well; the answer's first one is empty.
		waitFor(t, lines, "message.part.updated", `"text":""`)
		took := time.Since(began)
		waitFor(t, lines, "session.idle")
		return took
	}
}
