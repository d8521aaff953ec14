package channel

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// pluginConn is a plugin's connection to the home's socket: JSON-RPC in lines, as docs/plugins.md
// says, with nothing of thole's.
type pluginConn struct {
	conn net.Conn
	in   *bufio.Scanner
	id   int
}

type rpcError struct {
	Message string `json:"message"`
	Data    struct {
		Code string `json:"code"`
	} `json:"data"`
}

func (e *rpcError) Error() string { return e.Data.Code + ": " + e.Message }

func dialHost(socket string) (*pluginConn, error) {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	h := &pluginConn{conn: c, in: bufio.NewScanner(c)}
	h.in.Buffer(nil, 8<<20)
	return h, nil
}

// introduced is a connection of an instance of a plugin, which is this process.
func introduced(socket, name, instance string) (*pluginConn, error) {
	h, err := dialHost(socket)
	if err != nil {
		return nil, err
	}
	err = h.call("plugin/hello", object{"name": name, "instance_id": instance, "release": "1", "pid": os.Getpid()}, nil)
	if err != nil {
		_ = h.conn.Close()
	}
	return h, err
}

type object = map[string]any

func (h *pluginConn) call(method string, params object, into any) error {
	h.id++
	line, err := json.Marshal(object{"jsonrpc": "2.0", "id": h.id, "method": method, "params": params})
	if err != nil {
		return err
	}
	if _, err := h.conn.Write(append(line, '\n')); err != nil {
		return err
	}
	if !h.in.Scan() {
		return errors.Join(errors.New("the connection ended"), h.in.Err())
	}
	var out struct {
		Result json.RawMessage `json:"result"`
		Error  *rpcError       `json:"error"`
	}
	if err := json.Unmarshal(h.in.Bytes(), &out); err != nil {
		return err
	}
	if out.Error != nil {
		return out.Error
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(out.Result, into)
}

func refusal(err error) string {
	var e *rpcError
	if errors.As(err, &e) {
		return e.Data.Code
	}
	return fmt.Sprint(err)
}

type pluginDelivery struct {
	State  string `json:"state"`
	JobID  string `json:"job_id"`
	Again  bool   `json:"deduplicated"`
	Target struct {
		Ownership string `json:"ownership"`
		Lease     string `json:"app_server_lease_id"`
		Session   string `json:"managed_session_id"`
		Epoch     int    `json:"session_epoch"`
		Thread    string `json:"bound_thread_id"`
	} `json:"target"`
	Job struct {
		Batch struct {
			ID       string `json:"batch_id"`
			Close    string `json:"close_reason"`
			HeldFor  string `json:"held_for"`
			Count    int    `json:"delivery_attempt_count"`
			Attempts []struct {
				State   string `json:"state"`
				Session string `json:"managed_session_id"`
				Epoch   int    `json:"session_epoch"`
			} `json:"attempts"`
		} `json:"batch"`
	} `json:"job"`
}

type serverLease struct {
	ID      string `json:"app_server_lease_id"`
	Session string `json:"managed_session_id"`
	Epoch   int    `json:"session_epoch"`
	PID     int    `json:"server_pid"`
	State   string `json:"state"`
}

// stored makes a conversation that no server holds any more.
func (d *desk) stored(marks ...string) (threads []string) {
	d.t.Helper()
	server := exec.Command(d.codex, "app-server", "--listen", "unix://"+d.path("first"))
	server.Env, server.Dir, server.SysProcAttr = d.env(), d.path("work"), lab.Leash()
	if err := server.Start(); err != nil {
		d.t.Fatal(err)
	}
	var c *appclient.Client
	ended := make(chan struct{}, 8)
	d.until("the server", func() (ok bool) {
		var err error
		c, err = appclient.Dial(d.t.Context(), "unix://"+d.path("first"), appclient.Options{Name: "test", Experimental: true, OnNotification: func(n appclient.Notification) {
			if n.Method == "turn/completed" {
				ended <- struct{}{}
			}
		}})
		return err == nil
	})
	for _, mark := range marks {
		var started struct {
			Thread struct {
				ID string `json:"id"`
			} `json:"thread"`
		}
		if err := c.Call(d.t.Context(), "thread/start", object{"cwd": d.path("work"), "sandbox": "read-only", "approvalPolicy": "never"}, &started); err != nil {
			d.t.Fatal(err)
		}
		if err := c.Call(d.t.Context(), "turn/start", object{"threadId": started.Thread.ID, "input": appclient.Text("sim: say " + mark)}, nil); err != nil {
			d.t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			d.t.Fatal("the first turn does not end")
		}
		threads = append(threads, started.Thread.ID)
	}
	c.Close()
	_ = syscall.Kill(-server.Process.Pid, syscall.SIGTERM)
	_ = server.Wait()
	return threads
}

// records counts the messages of users in a thread that hold a text, by Codex's own record.
func (d *desk) records(thread, text string) (n int) {
	d.t.Helper()
	files, err := filepath.Glob(d.path("codex", "sessions", "*", "*", "*", "rollout-*"+thread+"*.jsonl"))
	if err != nil || len(files) == 0 {
		d.t.Fatalf("no rollout of %s: %v", thread, err)
	}
	for _, f := range files {
		all, err := os.ReadFile(f)
		if err != nil {
			d.t.Fatal(err)
		}
		for line := range strings.Lines(string(all)) {
			var r struct {
				Type    string
				Payload struct{ Type, Role string }
			}
			// A killed server may leave half a line.
			if json.Unmarshal([]byte(line), &r) == nil && r.Type == "response_item" && r.Payload.Type == "message" && r.Payload.Role == "user" && strings.Contains(line, text) {
				n++
			}
		}
	}
	return n
}

func (d *desk) socket() string { return d.path("thole", "thole.sock") }

func (d *desk) introduced(name, instance string) *pluginConn {
	d.t.Helper()
	h, err := introduced(d.socket(), name, instance)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = h.conn.Close() })
	return h
}

// ends waits for the end of a delivery.
func (d *desk) ends(h *pluginConn, key, state string) (got pluginDelivery) {
	d.t.Helper()
	d.until(key+" to be "+state, func() bool {
		if err := h.call("delivery/inspect", object{"idempotency_key": key}, &got); err != nil {
			d.t.Fatal(err)
		}
		if got.State == "held" && state != "held" || got.State == "closed" {
			d.t.Fatalf("%+v", got)
		}
		return got.State == state
	})
	return got
}

// A plugin hands in a result with nothing but a program's name: its server is started for
// the delivery, in the epoch of the barrier, and gone after it. With a lease the result goes
// into the leased server, and into no other.
func TestPlugin(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	threads := d.stored("one", "two")
	d.thole(nil, "job", "list") // which starts a daemon
	liar, err := dialHost(d.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer liar.conn.Close()
	if err := liar.call("delivery/inspect", object{"idempotency_key": "k1"}, nil); refusal(err) != "unauthorized" {
		t.Errorf("a plugin that did not introduce itself: %v", err)
	}
	if err := liar.call("plugin/hello", object{"name": "ci", "instance_id": "i1", "release": "1", "pid": 1}, nil); refusal(err) != "forbidden" {
		t.Errorf("a plugin that names another process: %v", err)
	}
	h := d.introduced("ci", "i1")
	enqueue := func(h *pluginConn, key, thread, payload string, target object) (got pluginDelivery, err error) {
		err = h.call("delivery/enqueue", object{
			"idempotency_key": key, "source_thread_id": thread, "summary": "plugin result", "payload": payload, "target": target,
			"policy": object{"read_only": true, "requires_approval": false, "requires_network": false, "requires_write_access": false},
		}, &got)
		return got, err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	own := object{"codex_binary": d.codex}

	first, err := enqueue(h, "k1", threads[0], "42", own)
	must(err)
	if first.Target.Ownership != "delivery_owned" || first.Target.Epoch != 1 || first.Target.Session == "" || first.Target.Thread != threads[0] {
		t.Errorf("%+v", first.Target)
	}
	again, err := enqueue(h, "k1", threads[0], "42", own)
	must(err)
	if !again.Again || again.JobID != first.JobID || again.Target != first.Target {
		t.Errorf("%+v, again %+v", first, again)
	}
	if _, err := enqueue(h, "k1", threads[0], "43", own); refusal(err) != "conflict" {
		t.Errorf("another result under the same key: %v", err)
	}
	got := d.ends(h, "k1", "delivered")
	if a := got.Job.Batch.Attempts; len(a) != 1 || a[0].Session != first.Target.Session || a[0].Epoch != 1 || got.Target != first.Target {
		t.Errorf("%+v", got)
	}
	d.until("the delivery's server to end", func() bool { return len(d.sessions()) == 0 })
	if n := d.records(threads[0], "plugin result"); n != 1 {
		t.Errorf("the thread holds the result %d times", n)
	}
	other := d.introduced("other", "i1")
	if _, err := enqueue(other, "k1", threads[0], "43", object{"codex_binary": d.path("none")}); err != nil {
		t.Errorf("another plugin's own key: %v", err)
	}
	lost := d.ends(other, "k1", "held")
	if lost.Job.Batch.HeldFor != "no_server" || lost.Job.Batch.Count != 0 || len(lost.Job.Batch.Attempts) != 1 || lost.Job.Batch.Attempts[0].State != "abandoned" {
		t.Errorf("without its program: %+v", lost)
	}

	var lease serverLease
	ensure := object{"source_thread_id": threads[1], "codex_binary": d.codex}
	must(h.call("app_server/ensure", ensure, &lease))
	if lease.State != "live" || lease.PID == 0 {
		t.Fatalf("%+v", lease)
	}
	var same serverLease
	must(h.call("app_server/ensure", ensure, &same))
	must(h.call("app_server/refresh", object{"app_server_lease_id": lease.ID}, &same))
	if same != lease {
		t.Errorf("%+v, then %+v", lease, same)
	}
	for name, target := range map[string]object{
		"another session": {"app_server_lease_id": lease.ID, "managed_session_id": first.Target.Session},
		"another epoch":   {"app_server_lease_id": lease.ID, "session_epoch": lease.Epoch + 1},
	} {
		if _, err := enqueue(h, "k2", threads[1], "43", target); refusal(err) != "conflict" {
			t.Errorf("%s: %v", name, err)
		}
	}
	leased := object{"app_server_lease_id": lease.ID, "managed_session_id": lease.Session, "session_epoch": lease.Epoch}
	if _, err := enqueue(h, "k2", threads[0], "43", leased); refusal(err) != "conflict" {
		t.Errorf("a lease of another thread: %v", err)
	}
	if _, err := enqueue(other, "k2", threads[1], "43", leased); refusal(err) != "not_found" {
		t.Errorf("a lease of another plugin: %v", err)
	}
	if err := other.call("app_server/stop", object{"app_server_lease_id": lease.ID}, nil); refusal(err) != "not_found" {
		t.Errorf("another plugin stops the server: %v", err)
	}
	if _, err = enqueue(h, "k2", threads[1], "43", leased); err != nil {
		t.Fatal(err)
	}
	got = d.ends(h, "k2", "delivered")
	if a := got.Job.Batch.Attempts; len(a) != 1 || a[0].Session != lease.Session || got.Target.Ownership != "explicit_lease" {
		t.Errorf("%+v", got)
	}
	must(h.call("app_server/stop", object{"app_server_lease_id": lease.ID}, &same))
	d.until("the leased server to end", func() bool { return len(d.sessions()) == 0 })
	if err := h.call("app_server/refresh", object{"app_server_lease_id": lease.ID}, nil); refusal(err) != "not_found" {
		t.Errorf("a lease that was given up: %v", err)
	}
	if n := d.records(threads[1], "plugin result"); n != 1 {
		t.Errorf("the thread holds the result %d times", n)
	}
}

const asPlugin = "THOLE_TEST_PLUGIN"

// runPlugin hands in results until it is killed, and writes a line after each answer. A
// daemon that is away is waited for.
func runPlugin(args string) {
	f := strings.Split(args, "\n")
	socket, codex, thread := f[0], f[1], f[2]
	from, _ := strconv.Atoi(f[3])
	for n := from; ; {
		h, err := introduced(socket, "storm", strconv.Itoa(os.Getpid()))
		for err == nil {
			err = h.call("delivery/enqueue", object{
				"idempotency_key": strconv.Itoa(n), "source_thread_id": thread, "summary": fmt.Sprintf("plugin result %d.", n),
				"policy": object{"read_only": true, "requires_approval": false, "requires_network": false, "requires_write_access": false},
				"target": object{"codex_binary": codex},
			}, nil)
			if err == nil {
				_, _ = fmt.Fprintln(os.Stdout, n)
				n++
			}
		}
		time.Sleep(20 * time.Millisecond) // a plugin polls for the next daemon
	}
}

// The plugin and the daemon are killed while results are handed in and delivered. What was
// acknowledged is there, and each result is in the thread once or held for a reason.
func TestPluginStorm(t *testing.T) {
	t.Parallel()
	kills, each := 4, 4
	if os.Getenv("THOLE_SOAK") != "" {
		kills, each = 40, 5
	}
	d := newDesk(t)
	thread := d.stored("one")[0]
	acked := 0
	for k := range kills {
		d.thole(nil, "job", "list") // which starts a daemon
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asPlugin+"="+strings.Join([]string{d.socket(), d.codex, thread, strconv.Itoa(acked)}, "\n"))
		cmd.SysProcAttr = lab.Leash()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range each {
			if !lines.Scan() {
				t.Fatal("the plugin ended")
			}
			n, err := strconv.Atoi(lines.Text())
			if err != nil || n != acked {
				t.Fatalf("%q, want %d", lines.Text(), acked)
			}
			acked++
		}
		if k%2 == 1 {
			d.killDaemon()
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	d.thole(nil, "job", "list") // which starts a daemon
	h := d.introduced("storm", "last")
	held := 0
	for n := range acked {
		var got pluginDelivery
		d.until(fmt.Sprintf("result %d to end", n), func() bool {
			if err := h.call("delivery/inspect", object{"idempotency_key": strconv.Itoa(n)}, &got); err != nil {
				t.Fatalf("result %d was acknowledged: %v", n, err)
			}
			if got.State == "held" { // a person looks, and lets the next one go
				held++
				d.thole(nil, "batch", "close-head", thread, "--reason", "operator_closed_unconfirmed")
			}
			return got.State == "delivered" || got.State == "closed"
		})
	}
	for n := range acked {
		if c := d.records(thread, fmt.Sprintf("plugin result %d.", n)); c > 1 {
			t.Errorf("result %d is in the thread %d times", n, c)
		} else if c == 0 && held == 0 {
			t.Errorf("result %d is not in the thread, and nothing was held", n)
		}
	}
	var found struct {
		Violations []any `json:"violations"`
	}
	d.thole(&found, "check")
	if len(found.Violations) > 0 {
		t.Errorf("%v", found.Violations)
	}
}

// killDaemon kills the owner of the home.
func (d *desk) killDaemon() {
	d.t.Helper()
	var s struct {
		PID int `json:"pid"`
	}
	d.thole(&s, "daemon", "status")
	if s.PID == 0 {
		d.t.Fatal("the daemon names no process")
	}
	_ = syscall.Kill(s.PID, syscall.SIGKILL)
}
