// Package usurper is an executord that its agent has taken over. It runs in a process
// of its own, so that only what its victim holds is measured.
package usurper

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/workspace"
)

// variable makes a test's own program an usurper.
const variable = "THOLE_TEST_USURPER"

// Usurper says how one answers.
type Usurper struct {
	How    string // "" is as the bearer token says
	Socket string // what it listens on in executord's place; "" is a port of its own
	Boot   string // as which start of executord
	// Executor is whose process it is, so that it ends when that one is stopped.
	Executor thole.ExecutorID
	// Elsewhere is where it redirects to, Turn and Thread whom it speaks for where its
	// ids are wrong.
	Elsewhere, Turn, Thread string
}

// Main is called first by the TestMain of a package that starts one.
func Main() {
	how := os.Getenv(variable)
	if how == "" {
		return
	}
	var u Usurper
	if err := json.Unmarshal([]byte(how), &u); err != nil {
		panic(err)
	}
	panic(u.serve())
}

// Start starts one, until the end of the test, and returns its address.
func (u Usurper) Start(t testing.TB) string {
	t.Helper()
	how, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(how), wire.Mark+"="+string(u.Executor))
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	at, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(at)
}

func (u Usurper) serve() error {
	network, at := "tcp", "127.0.0.1:0"
	if u.Socket != "" {
		if err := os.Remove(u.Socket); err != nil {
			return err
		}
		network, at = "unix", u.Socket
	}
	ln, err := net.Listen(network, at)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "http://"+ln.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test
		os.Exit(0)
	}()
	return http.Serve(ln, u)
}

// ServeHTTP implements http.Handler.
func (u Usurper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.How = cmp.Or(u.How, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	switch {
	case r.URL.Path == "/healthz":
	case strings.HasSuffix(r.URL.Path, "/events"):
		u.events(w, r)
	case r.URL.Path == "/status" && u.Boot != "": // the one that it was, or nobody would listen to it
		_ = json.NewEncoder(w).Encode(wire.Status{Boot: u.Boot, Runs: []wire.Run{}})
	case r.URL.Path == "/ack" && u.Boot != "": // or it would not be asked for more
		_, _ = w.Write([]byte("{}"))
	case u.How == "tree bomb" && strings.HasPrefix(r.URL.Path, "/workspace/"):
		u.files(w, r)
	case u.How == "wrong ids" && u.Boot == "":
		_, _ = w.Write([]byte(`{"id":"another","for":"turn","thread":"thread","provider":"p","state":"running","cursor":0,"acked":0,"started":"2026-01-01T00:00:00Z"}`))
	case u.How == "deep answer":
		pour(w, `{"boot":`, "[")
	case u.How == "redirect":
		http.Redirect(w, r, u.Elsewhere, http.StatusTemporaryRedirect)
	case u.How == "huge headers":
		headers(w)
	case u.How == "drip":
		drip(w, `{"boot":"`, "a")
	default:
		pour(w, `{"boot":"`, "a")
	}
}

func (u Usurper) events(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	line := func(cursor int, format string, args ...any) []byte {
		return fmt.Appendf(nil, `{"cursor":%d,"event":{"id":"usurped%d","time":"2026-01-01T00:00:00Z",%s}}`+"\n", cursor, cursor, fmt.Sprintf(format, args...))
	}
	const note = `"kind":"note.reported"`
	switch u.How {
	case "endless line":
		pour(w, `{"cursor":`+strconv.Itoa(after+1)+`,"event":{"text":"`, "a")
	case "many events":
		out := bufio.NewWriterSize(w, 64<<10)
		for n := after + 1; n <= 10_000_000; n++ {
			if _, err := out.Write(line(n, note)); err != nil {
				return
			}
		}
	case "future cursor":
		_, _ = w.Write(line(1<<40, note))
	case "cursor twice":
		_, _ = w.Write(append(line(1, note), line(1, note)...))
	case "redirect":
		http.Redirect(w, r, u.Elsewhere, http.StatusTemporaryRedirect)
	case "huge headers":
		headers(w)
	case "drip":
		drip(w, `{"cursor":`, " ")
	case "wrong ids": // an item and an end, of another thread's turn
		_, _ = w.Write(line(after+1, `"thread":%q,"turn":%q,"kind":"item.completed","item":{"id":"usurped","kind":"message","text":"forged"}`, u.Thread, u.Turn))
		_, _ = w.Write(line(after+2, `"thread":%q,"turn":%q,"kind":"turn.ended","outcome":"failed"`, u.Thread, u.Turn))
	case "tree bomb":
		_, _ = w.Write(line(after+1, `"kind":"turn.ended","outcome":"completed"`))
	}
}

// files says that the workspace is a tree of very many names.
func (u Usurper) files(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/workspace/sync":
		data := Bomb()
		_ = json.NewEncoder(w).Encode(workspace.ScanResult{Tree: objects.SumOf(data), TreeSize: int64(len(data)), New: []workspace.Object{}, Old: []string{}})
	case "/workspace/sync/push":
		var req workspace.PushRequest
		err := json.NewDecoder(r.Body).Decode(&req)
		if err == nil {
			err = push(req.Tree.Link)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte("{}"))
	default:
		_, _ = w.Write([]byte("{}"))
	}
}

func push(to objects.Link) error {
	data := Bomb()
	req, err := http.NewRequest(http.MethodPut, to.URL, bytes.NewReader(data))
	if err != nil {
		return err
	}
	for k, v := range to.Headers {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return errors.New(resp.Status)
	}
	return nil
}

// Bomb is a stored tree of a megabyte that takes some 180 MiB of who holds it whole. No
// reader may refuse it: files that never held still may be in a tree.
var Bomb = sync.OnceValue(func() []byte {
	var packed bytes.Buffer
	enc, err := zstd.NewWriter(&packed)
	if err != nil {
		panic(err)
	}
	fmt.Fprint(enc, `{"version":2,"objects":[],"entries":[`)
	for i := range 250_000 {
		fmt.Fprintf(enc, `{"p":"%d-%d","k":"f","u":true,"x":true},`, i, i*7_919%10_007)
	}
	fmt.Fprint(enc, `{"p":"x","k":"d"}]}`)
	if err := enc.Close(); err != nil {
		panic(err)
	}
	return packed.Bytes()
})

// pour writes without an end.
func pour(w io.Writer, begin, then string) {
	more := bytes.Repeat([]byte(then), 64<<10)
	for _, err := w.Write([]byte(begin)); err == nil; _, err = w.Write(more) {
	}
}

// drip writes without an end, slowly.
func drip(w http.ResponseWriter, begin, then string) {
	for _, err := w.Write([]byte(begin)); err == nil; _, err = w.Write([]byte(then)) {
		_ = http.NewResponseController(w).Flush()
		time.Sleep(10 * time.Millisecond) // a slow peer, which nothing waits for
	}
}

func headers(w http.ResponseWriter) {
	for i := range 300 {
		w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("a", 4<<10))
	}
	_, _ = w.Write([]byte("{}"))
}
