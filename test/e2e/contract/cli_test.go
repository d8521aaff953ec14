package contract

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/protocol/app"
	"github.com/tholehq/thole/test/e2e/home"
)

func TestThreadCommands(t *testing.T) {
	h := home.New(t)
	h.Up()
	out, errs, code := h.Run("thread", "start", "--model", "test/script", "sim: say hello from the pipeline")
	if code != 0 || !strings.Contains(out, "hello from the pipeline") {
		t.Fatalf("start: %d %s%s", code, out, errs)
	}
	id := strings.Fields(out)[1]

	sent := h.Command("--json", "thread", "send", id, "sim: run echo one ;; say got %tool%")
	lines, err := sent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sent.Start(); err != nil {
		t.Fatal(err)
	}
	var methods []string
	var cursor uint64
	for s := bufio.NewScanner(lines); s.Scan(); {
		var l struct {
			Method string
			Seq    uint64
		}
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("no JSON line: %s", s.Text())
		}
		methods = append(methods, l.Method)
		if cursor == 0 {
			cursor = l.Seq
		}
		if l.Method == "item/commandExecution/requestApproval" {
			if out, errs, code := h.Run("thread", "show", id); code != 0 || !strings.Contains(out, "waits for approval") || !strings.Contains(out, "echo one") {
				t.Errorf("show: %d %s%s", code, out, errs)
			}
			if out, errs, code := h.Run("thread", "answer", id, "--decision", "allow"); code != 0 {
				t.Errorf("answer: %d %s%s", code, out, errs)
			}
		}
	}
	if err := sent.Wait(); err != nil {
		t.Errorf("send: %v", err)
	}
	if got := strings.Join(methods, " "); !strings.HasSuffix(got, "turn/completed") || !strings.Contains(got, "item/commandExecution/outputDelta") {
		t.Errorf("send told %s", got)
	}
	if cursor == 0 {
		t.Error("no line had a cursor")
	}
	if out, errs, code := h.Run("thread", "show", "--turns", "1", id); code != 0 || !regexp.MustCompile(`completed in .*, model .* \+ tools .* \+ human [^ ]*[1-9][^ ]* \+ overhead `).MatchString(out) {
		t.Errorf("show of a turn that waited for an answer: %d %s%s", code, out, errs)
	}
	if _, errs, code := h.Run("thread", "send", id, "sim: crash"); code != 9 || !strings.Contains(errs, "the turn failed") {
		t.Errorf("a failed turn: %d %s", code, errs)
	}
	if _, errs, code := h.Run("thread", "answer", id, "--decision", "allow"); code != 4 || !strings.Contains(errs, "0 asks are pending") {
		t.Errorf("answer without an ask: %d %s", code, errs)
	}
	if _, errs, code := h.Run("thread", "show", "0199aaaa-0000-7000-8000-000000000001"); code != 3 || !strings.Contains(errs, "thread not found") {
		t.Errorf("show of nothing: %d %s", code, errs)
	}
	if out, errs, code := h.Run("thread", "send", "--detach", id, "sim: hang"); code != 0 {
		t.Fatalf("detach: %d %s%s", code, out, errs)
	}
	if _, errs, code := h.Run("thread", "start", "--model", "test/script", "-C", "."); code != 0 {
		t.Errorf("start in this directory: %d %s", code, errs)
	}
	if _, errs, code := h.Run("thread", "interrupt", id); code != 0 {
		t.Errorf("interrupt: %d %s", code, errs)
	}
	if _, errs, code := h.Run("thread", "archive", id); code != 0 {
		t.Errorf("archive: %d %s", code, errs)
	}
	if out, _, _ := h.Run("thread", "list", "--archived"); !strings.Contains(out, id) {
		t.Errorf("archived: %s", out)
	}
	if _, errs, code := h.Run("thread", "close", id); code != 0 {
		t.Fatalf("close: %d %s", code, errs)
	}
	if _, errs, code := h.Run("thread", "delete", id); code != 2 || !strings.Contains(errs, "--yes") {
		t.Errorf("close without --yes: %d %s", code, errs)
	}
	if _, errs, code := h.Run("thread", "delete", "--yes", id); code != 0 {
		t.Errorf("close: %d %s", code, errs)
	}
}

// The listeners carry messages to the home's owner, and refuse who may not come.
func TestListeners(t *testing.T) {
	h := home.New(t)
	h.Up()
	token := filepath.Join(h.Dir, "token")
	if err := os.WriteFile(token, []byte("open sesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := h.Run("app-server", "--listen", "ws://127.0.0.1:0"); code != 6 || !strings.Contains(errs, "without authentication") {
		t.Errorf("a port without a token: %d %s", code, errs)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, args := range [][]string{
		{"--listen", "ws://127.0.0.1:0", "--ws-auth", "capability-token", "--ws-token-file", token},
		{"--listen", "unix://" + filepath.Join(h.Dir, "own.sock")},
	} {
		cmd := h.Command(append([]string{"app-server"}, args...)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		addr, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		addr = strings.TrimSpace(addr)
		o := appclient.Options{Name: "listener-test", Token: "open sesame"}
		if strings.HasPrefix(addr, "ws://") {
			if _, err := appclient.Dial(ctx, addr, appclient.Options{Name: "thief"}); err == nil {
				t.Error("a client without the token was let in")
			}
			req, _ := http.NewRequest(http.MethodGet, "http://"+strings.TrimPrefix(addr, "ws://")+"/readyz", nil)
			req.Header.Set("Origin", "https://evil.example")
			if r, err := http.DefaultClient.Do(req); err != nil || r.StatusCode != http.StatusForbidden {
				t.Errorf("a browser got %v %v", r, err)
			} else {
				_ = r.Body.Close()
			}
		} else {
			o.Token = ""
		}
		c, err := appclient.Dial(ctx, addr, o)
		if err != nil {
			t.Fatal(err)
		}
		oneTurn(t, ctx, c)
		c.Close()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
}

// An owner is started when there is none, and two pipes share it.
func TestStdioStartsTheOwner(t *testing.T) {
	h := home.New(t)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	id := ""
	for range 2 {
		cmd := h.Command("app-server", "--listen", "stdio://")
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c, err := appclient.Pipe(ctx, out, in, appclient.Options{Name: "pipe"})
		if err != nil {
			t.Fatal(err)
		}
		if id == "" {
			v, err := c.StartThread(ctx, app.ThreadStartParams{})
			if err != nil {
				t.Fatal(err)
			}
			id = v.Thread.ID
		} else if th, err := c.ReadThread(ctx, id); err != nil || th.ID != id {
			t.Errorf("the second pipe sees %v %v", th, err)
		}
		c.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("app-server ended with %v", err)
		}
	}
}

// A client that reads no more is one that left: the server on its pipe ends in order.
func TestStdioWithoutAReader(t *testing.T) {
	h := home.New(t)
	cmd := h.Command("app-server", "--listen", "stdio://")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	_, _ = io.WriteString(in, `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"deaf","version":"1"}}}`+"\n")
	if err := cmd.Wait(); err != nil {
		t.Errorf("app-server ended with %v", err)
	}
}

func oneTurn(t *testing.T, ctx context.Context, c *appclient.Client) {
	t.Helper()
	model := "test/script"
	v, err := c.StartThread(ctx, app.ThreadStartParams{Settings: app.Settings{Model: &model}})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := c.StartTurn(ctx, app.TurnStartParams{ThreadID: v.Thread.ID, Input: appclient.Text("sim: say through the listener")})
	if err != nil {
		t.Fatal(err)
	}
	for {
		page, err := c.Turns(ctx, app.TurnsListParams{ThreadID: v.Thread.ID})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Data) == 1 && page.Data[0].ID == turn.ID && page.Data[0].Status == app.TurnCompleted {
			return
		}
		if ctx.Err() != nil {
			t.Fatal("the turn did not end")
		}
		time.Sleep(20 * time.Millisecond) // turns are polled here on purpose: a reader without a subscription
	}
}
