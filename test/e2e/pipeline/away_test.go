package pipeline

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// gate stands before an S3 server and can be shut in three ways.
type gate struct {
	t    testing.TB
	to   string
	addr string

	mu    sync.Mutex // guards what follows
	ln    net.Listener
	mode  string // "", "hangs", "503"; a closed listener refuses
	conns []net.Conn
}

func newGate(t testing.TB, to string) *gate {
	g := &gate{t: t, to: to, addr: "127.0.0.1:0"}
	g.open("")
	t.Cleanup(g.shut)
	return g
}

func (g *gate) open(mode string) {
	g.t.Helper()
	g.shut()
	g.mu.Lock()
	defer g.mu.Unlock()
	ln, err := net.Listen("tcp", g.addr)
	if err != nil {
		g.t.Fatal(err)
	}
	g.addr, g.ln, g.mode = ln.Addr().String(), ln, mode
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			g.mu.Lock()
			g.conns = append(g.conns, c)
			g.mu.Unlock()
			go g.serve(c, mode)
		}
	}()
}

func (g *gate) serve(c net.Conn, mode string) {
	switch mode {
	case "hangs":
		_, _ = io.Copy(io.Discard, c)
	case "503":
		buf := make([]byte, 64<<10)
		if _, err := c.Read(buf); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}
	default:
		to, err := net.Dial("tcp", g.to)
		if err != nil {
			break
		}
		defer to.Close()
		go func() { _, _ = io.Copy(to, c); _ = to.Close() }()
		_, _ = io.Copy(c, to)
	}
	c.Close()
}

// shut refuses new connections and cuts off the old ones.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ln != nil {
		g.ln.Close()
	}
	for _, c := range g.conns {
		c.Close()
	}
	g.conns = nil
}

func (r *rig) says(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(r.path, args...)
	cmd.Env = r.env
	out, _ := cmd.CombinedOutput() // doctor fails where something is wrong
	return string(out)
}

// thole up starts without its object store, refused, silent, failing, missing or no
// directory at all. Threads are read and running turns followed, syncs and restores wait
// and say so, and all goes on by itself when the store is there again.
func TestUpWithoutItsObjectStore(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"refuses", "hangs", "503", "missing", "no directory"} {
		t.Run(strings.ReplaceAll(how, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "THOLE_EXECUTOR_REMOVE_AFTER=1ms")
			objects := filepath.Join(r.home, "objects")
			away, back := func() {
				if err := os.Rename(objects, objects+".gone"); err != nil {
					t.Fatal(err)
				}
				if how == "no directory" {
					if err := os.WriteFile(objects, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}, func() {
				_ = os.Remove(objects)
				if err := os.Rename(objects+".gone", objects); err != nil {
					t.Fatal(err)
				}
			}
			if how == "refuses" || how == "hangs" || how == "503" {
				b := lab.S3(t)
				g := newGate(t, b.Endpoint)
				secret := filepath.Join(r.home, "secret")
				if err := os.WriteFile(secret, []byte(b.SecretKey), 0o600); err != nil {
					t.Fatal(err)
				}
				r.env = append(r.env, "THOLE_OBJECTS_KIND=s3", "THOLE_OBJECTS_ENDPOINT=http://"+g.addr, "THOLE_OBJECTS_BUCKET="+b.Bucket,
					"THOLE_OBJECTS_REGION="+b.Region, "THOLE_OBJECTS_ACCESS_KEY="+b.AccessKey, "THOLE_OBJECTS_SECRET_KEY_FILE="+secret)
				away, back = func() {
					if g.shut(); how != "refuses" {
						g.open(how)
					}
				}, func() { g.open("") }
			}
			r.begin(t)
			cold, open := r.session(t, "test"), r.session(t, "test")
			cold.settle(cold.start("sim: run echo kept > f", ""), "completed")
			r.owner(t, "thole/executor/close", map[string]string{"thread_id": cold.id})
			poll.Until(t, "the executor's removal", func() bool {
				r.owner(t, "thole/sweep", struct{}{})
				_, ok := r.executor(t, cold.id)
				return !ok
			})
			asks := open.start("sim: ask Which? | red | blue ;; run echo late > g ;; say answered", "")
			q := open.asked(asks)
			r.murder(t)
			away()
			r.begin(t)
			// A running turn is followed to its end; its files wait.
			open.reply(q, map[string]any{"answers": map[string][]string{q.Questions[0].ID: {"blue"}}})
			if open.settle(asks, "completed"); !strings.Contains(open.said(asks), "answered") {
				t.Errorf("said %q", open.said(asks))
			}
			if said := r.says(t, "thread", "show", open.id); !strings.Contains(said, "files of the last turn are not saved") || !strings.Contains(said, "the object store is away") {
				t.Errorf("thread show does not say that files wait:\n%s", said)
			}
			if said := r.says(t, "doctor"); !strings.Contains(said, "sync and restore of workspaces") {
				t.Errorf("doctor says:\n%s", said)
			}
			// What needs a restore waits and does not fail.
			id := cold.start("sim: run cat f", "")
			poll.Until(t, "the turn that waits", func() bool {
				return strings.Contains(string(r.log.Bytes()), `msg="turn waits" turn=`+id) && cold.get(id).Phase == "queued" // in this order
			})
			if got := cold.get(id); got.Outcome != "" {
				t.Errorf("a turn that waits for the store is %+v", got)
			}
			if said := r.says(t, "thread", "show", cold.id); !strings.Contains(said, "the object store is away") {
				t.Errorf("thread show does not say what the turn waits for:\n%s", said)
			}
			back()
			if cold.settle(id, "completed"); !strings.Contains(cold.said(id), "kept") {
				t.Errorf("after the store came back it said %q", cold.said(id))
			}
			poll.Until(t, "the sync that waited", func() bool { return !strings.Contains(r.says(t, "thread", "show", open.id), "files not stored") })
			if info, ok := r.executor(t, open.id); !ok || info.State != executor.Running {
				t.Errorf("the other executor is %+v", info)
			}
		})
	}
}
