package pipeline

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/memory"
)

// hostile is the variable that makes this program an executord that its agent has
// taken over: how it answers, where, and as which start of executord.
const hostile = "THOLE_TEST_HOSTILE"

type usurper struct{ How, Socket, Boot string }

func (u usurper) serve() error {
	if err := os.Remove(u.Socket); err != nil {
		return err
	}
	ln, err := net.Listen("unix", u.Socket)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "ready")
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test
		os.Exit(0)
	}()
	return http.Serve(ln, u)
}

func (u usurper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	junk := bytes.Repeat([]byte("a"), 64<<10)
	endless := func(begin string) {
		for _, err := w.Write([]byte(begin)); err == nil; _, err = w.Write(junk) {
		}
	}
	switch {
	case r.URL.Path == "/healthz":
		return
	case r.URL.Path == "/status": // the one that it was, or nobody would listen to it
		_ = json.NewEncoder(w).Encode(wire.Status{Boot: u.Boot, Runs: []wire.Run{}})
		return
	case r.URL.Path == "/ack" && u.How == "many events": // or it would not be asked for more
		_, _ = w.Write([]byte("{}"))
		return
	case !strings.HasSuffix(r.URL.Path, "/events"):
		endless(`{"id":"`)
		return
	}
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	line := func(cursor int) []byte {
		return fmt.Appendf(nil, `{"cursor":%d,"event":{"id":"e%d","kind":"note.reported","time":"2026-01-01T00:00:00Z"}}`+"\n", cursor, cursor)
	}
	switch u.How {
	case "endless line":
		endless(`{"cursor":` + strconv.Itoa(after+1) + `,"event":{"text":"`)
	case "many events":
		out := bufio.NewWriterSize(w, 64<<10)
		for n := after + 1; n <= 10_000_000; n++ {
			if _, err := out.Write(line(n)); err != nil {
				return
			}
		}
	case "future cursor":
		_, _ = w.Write(line(1 << 40))
	case "redirect":
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
	case "huge headers":
		for i := range 300 {
			w.Header().Set("X-"+strconv.Itoa(i), string(junk[:4<<10]))
		}
	case "drip":
		for _, err := w.Write([]byte(`{"cursor":`)); err == nil; _, err = w.Write([]byte(" ")) {
			_ = http.NewResponseController(w).Flush()
			time.Sleep(10 * time.Millisecond) // a slow peer, which nothing waits for
		}
	}
}

// Whatever an executord says that its agent has taken over in the middle of a turn,
// the owner holds at most 64 MiB more, another thread's turn runs to its end, and the
// program ends at a signal. With THOLE_SOAK=1 in every way that we know.
func TestTheOwnerOfAHostileExecutord(t *testing.T) {
	ways := []struct{ how, code string }{{"endless line", "executor_limit"}}
	if os.Getenv("THOLE_SOAK") != "" {
		ways = append(ways, []struct{ how, code string }{{"many events", ""}, {"future cursor", "executor_limit"},
			{"redirect", ""}, {"huge headers", ""}, {"drip", ""}}...)
	}
	for _, way := range ways {
		t.Run(way.how, func(t *testing.T) {
			r := newRig(t)
			r.begin(t)
			other, victim := r.session(t, "test"), r.session(t, "test")
			other.play("sim: say warm")
			run := victim.start("sim: run echo begun ;; hang", "")
			victim.shows(run, command("begun"))
			info, ok := r.executor(t, victim.id)
			if !ok {
				t.Fatal("no executor runs")
			}
			pid := r.cmd.Process.Pid
			before := memory.PeakOf(t, pid, true)
			takeOver(t, usurper{way.how, strings.TrimPrefix(info.Endpoint, "unix:"), info.Boot})
			r.kill(t, info)
			for range 5 {
				if said := other.play("sim: run echo $((40+2))"); !strings.Contains(said, "42") {
					t.Errorf("the other thread said %q", said)
				}
			}
			if way.code != "" {
				if got := victim.settle(run, "failed"); got.Error == nil || got.Error.Code != way.code {
					t.Errorf("the turn ended with %+v", got.Error)
				}
			}
			grew := memory.PeakOf(t, pid, false) - before
			if grew > 64<<10 {
				t.Errorf("the owner took %d MiB", grew>>10)
			}
			t.Logf("the owner took %d MiB", grew>>10)
			r.stop()
			if status, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signaled() {
				t.Errorf("thole up had to be killed: %s", r.cmd.ProcessState)
			}
		})
	}
}

// takeOver answers in the place of an executord, from a process of its own.
func takeOver(t *testing.T, u usurper) {
	t.Helper()
	how, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), hostile+"="+string(how))
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}
