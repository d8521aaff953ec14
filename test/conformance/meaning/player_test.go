// Package meaning compares, value by value, what thole says on the wire with what the
// installed codex says of the same thing, for threads of every agent.
package meaning

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/appschema"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/transport/stdio"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/test/e2e/home"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// player is a client that does what a test says and keeps what it sees.
type player struct {
	t   *testing.T
	s   jsonrpc.Stream
	rec *appschema.Recorder
	// answers decides server requests by method; one that is missing fails the test.
	mu      sync.Mutex
	answers map[string]string
	next    int
}

func play(t *testing.T, s jsonrpc.Stream, rec *appschema.Recorder) *player {
	t.Helper()
	p := &player{t: t, s: rec.Client(s), rec: rec}
	var wg sync.WaitGroup
	wg.Go(p.read)
	t.Cleanup(func() {
		_ = p.s.Close("done")
		wg.Wait()
	})
	p.call("initialize", `{"clientInfo":{"name":"meaning","version":"1"},"capabilities":{"experimentalApi":true}}`)
	return p
}

func (p *player) read() {
	for {
		b, err := p.s.Read(context.Background())
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(b, &m) != nil || m.ID == nil || m.Method == "" {
			continue
		}
		p.mu.Lock()
		answer, ok := p.answers[m.Method]
		p.mu.Unlock()
		if !ok {
			p.t.Errorf("nobody expected %s", b)
			continue
		}
		if err := p.s.Write(context.Background(), []byte(`{"id":`+string(m.ID)+`,"result":`+answer+`}`)); err != nil {
			p.t.Error(err)
		}
	}
}

// until waits for a line from index on that ok takes.
func (p *player) until(from int, what string, ok func(appschema.Line) bool) (int, appschema.Line) {
	p.t.Helper()
	deadline := time.After(90 * time.Second)
	for {
		lines, more := p.rec.Lines()
		for i := from; i < len(lines); i++ {
			if ok(lines[i]) {
				return i, lines[i]
			}
		}
		select {
		case <-more:
		case <-deadline:
			p.t.Fatalf("no %s", what)
		}
	}
}

func (p *player) call(method, params string) json.RawMessage {
	p.t.Helper()
	p.next++
	id := fmt.Sprint(p.next)
	if err := p.s.Write(context.Background(), []byte(`{"id":`+id+`,"method":"`+method+`","params":`+params+`}`)); err != nil {
		p.t.Fatal(err)
	}
	_, l := p.until(0, "answer to "+method, func(l appschema.Line) bool { return !l.FromClient && l.Params == nil && l.ID == id })
	if l.Error != nil {
		p.t.Fatalf("%s: %s", method, l.Error)
	}
	return l.Result
}

// thread starts one and returns its id and where it works.
func (p *player) thread(params string) (id, dir string) {
	p.t.Helper()
	var r struct {
		Thread struct{ ID, Cwd string }
	}
	if err := json.Unmarshal(p.call("thread/start", params), &r); err != nil {
		p.t.Fatal(err)
	}
	return r.Thread.ID, r.Thread.Cwd
}

// turn says something, answers what is asked, and returns the lines to the turn's end.
func (p *player) turn(thread, text string, answers map[string]string) []appschema.Line {
	p.t.Helper()
	p.mu.Lock()
	p.answers = answers
	p.mu.Unlock()
	all, _ := p.rec.Lines()
	raw, _ := json.Marshal(map[string]any{"threadId": thread, "input": []any{map[string]any{"type": "text", "text": text}}})
	p.call("turn/start", string(raw))
	p.until(len(all), "end of "+text, func(l appschema.Line) bool { return l.Method == "turn/completed" && !l.FromClient })
	lines, _ := p.rec.Lines()
	return lines[len(all):]
}

// codex starts the real server on the scripted model.
func codex(t *testing.T) *player {
	t.Helper()
	binary := lab.Codex(t)
	sim := modelsim.Start(t)
	dir, err := os.MkdirTemp("/var/tmp", "meaning")
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := modelsim.CodexConfig(home, sim.URL()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "app-server")
	cmd.Env = []string{"HOME=" + dir, "CODEX_HOME=" + home, "PATH=/usr/bin:/bin"}
	cmd.Dir = work
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	return play(t, stdio.New(out, in, 0), appschema.NewPlainRecorder())
}

// served starts thole with all agents and connects a client, whose every line is checked.
func served(t *testing.T) *player {
	t.Helper()
	schema := appschema.Installed(t)
	h := home.New(t)
	h.Vars = []string{"THOLE_PROVIDERS_CODEX=" + lab.Codex(t), "THOLE_PROVIDERS_CLAUDE=" + lab.Claude(t), "THOLE_PROVIDERS_OPENCODE=" + lab.Opencode(t)}
	h.Up()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := ws.Dial(ctx, "unix://"+daemon.Socket(h.Dir), ws.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return play(t, s, schema.NewRecorder(func(problem string) { t.Error(problem) }))
}
