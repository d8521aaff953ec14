package sources

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/protocol/app"
)

// A client that names a cwd works there, sees it in every answer, and is refused what the
// server does not do.
func TestACwdIsHonouredOrRefused(t *testing.T) {
	r := newRig(t)
	ctx := context.Background()
	c, err := appclient.Dial(ctx, "unix://"+daemon.Socket(r.Dir), appclient.Options{Name: "test", Experimental: true, Extended: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(r.repo, link); err != nil {
		t.Fatal(err)
	}
	model := "test/script"
	v, err := c.StartThread(ctx, app.ThreadStartParams{Settings: app.Settings{Cwd: &link, Model: &model, RuntimeWorkspaceRoots: []string{r.repo}}})
	if err != nil {
		t.Fatal(err)
	}
	env := v.Thread.Environments[0]
	for name, got := range map[string]string{"cwd": v.Cwd, "thread's": v.Thread.Cwd, "root": v.RuntimeWorkspaceRoots[0], "environment's": env.Cwd, "its root": env.RuntimeWorkspaceRoots[0]} {
		if got != r.repo {
			t.Errorf("%s is %s, want %s", name, got, r.repo)
		}
	}
	if v.Files.Kind != "here" {
		t.Errorf("the source is %+v", v.Files)
	}
	list, err := c.ListThreads(ctx, app.ThreadListParams{Cwd: json.RawMessage(`"` + r.repo + `"`)})
	if err != nil || len(list.Data) != 1 || list.Data[0].ID != v.Thread.ID {
		t.Errorf("listed by its directory: %+v, %v", list.Data, err)
	}
	call := func(method string, params any) error { return c.Call(ctx, method, params, nil) }
	other, id := "/usr", v.Thread.ID
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"relative":          {call("thread/start", obj{"cwd": "app"}), "not an absolute path"},
		"not there":         {call("thread/start", obj{"cwd": "/no/such/dir"}), "/no/such/dir"},
		"another root":      {call("thread/start", obj{"cwd": r.repo, "runtimeWorkspaceRoots": []string{r.repo, other}}), "/usr is another directory"},
		"roots alone":       {call("thread/start", obj{"runtimeWorkspaceRoots": []string{r.repo}}), "without a cwd"},
		"cwd and source":    {call("thread/start", obj{"cwd": r.repo, "source": obj{"kind": "empty"}}), "a source and a cwd"},
		"no kind":           {call("thread/start", obj{"source": obj{"kind": ""}}), "no kind"},
		"thole's home":      {call("thread/start", obj{"cwd": r.Dir}), "agents cannot work in"},
		"resumed elsewhere": {call("thread/resume", obj{"threadId": id, "cwd": other}), "cannot move to /usr"},
		"forked elsewhere":  {call("thread/fork", obj{"threadId": id, "cwd": other}), "cannot move to /usr"},
		"set elsewhere":     {call("thread/settings/update", obj{"threadId": id, "cwd": other}), "cannot move to /usr"},
		"forked to a root":  {call("thread/fork", obj{"threadId": id, "runtimeWorkspaceRoots": []string{other}}), "/usr is another directory"},
		"a turn elsewhere":  {call("turn/start", obj{"threadId": id, "cwd": other, "input": []obj{{"type": "text", "text": "x"}}}), "cannot move to /usr"},
	} {
		if tc.err == nil || !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, tc.err, tc.want)
		}
	}
	for name, err := range map[string]error{
		"resumed where it is":   call("thread/resume", obj{"threadId": id, "cwd": link}),
		"forked with its root":  call("thread/fork", obj{"threadId": id, "runtimeWorkspaceRoots": []string{r.repo}, "ephemeral": true}),
		"set to where it is":    call("thread/settings/update", obj{"threadId": id, "cwd": r.repo}),
		"without a cwd":         call("thread/start", obj{}),
		"with an empty one too": call("thread/start", obj{"cwd": ""}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A client of a listener without a token may be anybody: it names no directory of this
// machine. On a pipe it is a program of its user.
func TestClientsFromElsewhereNameNoDirectory(t *testing.T) {
	r := newRig(t)
	server := r.Command("app-server", "--listen", "ws://127.0.0.1:0", "--ws-auth", "none")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Signal(os.Interrupt); _ = server.Wait() }()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	c, err := appclient.Dial(ctx, strings.TrimSpace(addr), appclient.Options{Name: "elsewhere", Extended: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, params := range []obj{{"cwd": r.repo}, {"source": obj{"kind": "here", "dir": r.repo}}, {"source": obj{"kind": "branch", "repo": r.repo}}} {
		if err := c.Call(ctx, "thread/start", params, nil); err == nil {
			t.Errorf("%v was taken", params)
		}
	}
	if _, err := c.StartThread(ctx, app.ThreadStartParams{}); err != nil {
		t.Errorf("without a directory: %v", err)
	}

	pipe := r.Command("app-server")
	in, err := pipe.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := pipe.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := pipe.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(in, `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"t","version":"1"}}}`+"\n"+
		`{"id":2,"method":"thread/start","params":{"cwd":"`+r.repo+`"}}`+"\n")
	for lines := bufio.NewScanner(answers); lines.Scan(); {
		var a struct {
			ID     int
			Result struct{ Cwd string }
		}
		if err := json.Unmarshal(lines.Bytes(), &a); err == nil && a.ID == 2 {
			if a.Result.Cwd != r.repo {
				t.Errorf("on a pipe: %s", lines.Text())
			}
			break
		}
	}
	_ = in.Close()
	if err := pipe.Wait(); err != nil {
		t.Error(err)
	}
}
