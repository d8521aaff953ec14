//go:build linux

package exec_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/protocol/exec"
)

// TestLargeReply sends a file whose encoding needs several frames.
func TestLargeReply(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	path := filepath.Join(t.TempDir(), "big")
	data := bytes.Repeat([]byte{0, 1, 2, 3, 4, 5, 6, 255}, 20<<17) // 20 MiB
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var got exec.ReadFileResult
	if err := r.Call(t.Context(), exec.MethodReadFile, exec.PathParams{Path: exec.FormatURI(path)}, &got); err != nil || !bytes.Equal(got.Data, data) {
		t.Fatalf("%d bytes, %v", len(got.Data), err)
	}
}

// TestFilesBeyondAMessage: a file that no message carries is refused with what reads it.
func TestFilesBeyondAMessage(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	path := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const most = 47 << 20
	if err := os.Truncate(path, most); err != nil {
		t.Fatal(err)
	}
	var got exec.ReadFileResult
	if err := r.Call(t.Context(), exec.MethodReadFile, exec.PathParams{Path: exec.FormatURI(path)}, &got); err != nil || len(got.Data) != most {
		t.Fatalf("%d bytes, %v", len(got.Data), err)
	}
	if err := os.Truncate(path, most+1); err != nil {
		t.Fatal(err)
	}
	err := r.Call(t.Context(), exec.MethodReadFile, exec.PathParams{Path: exec.FormatURI(path)}, &got)
	var refused *execclient.Error
	if !errors.As(err, &refused) || refused.Code != exec.CodeInvalidRequest || !strings.Contains(refused.Message, exec.MethodOpen) {
		t.Fatal(err)
	}
	if err := r.Call(t.Context(), exec.MethodOpen, exec.OpenParams{HandleID: "h", Path: exec.FormatURI(path)}, nil); err != nil {
		t.Fatal(err)
	}
}

// TestManagedNetworkIsRefused: what the executor cannot keep does not start.
func TestManagedNetworkIsRefused(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	r := connect(t, url, execclient.Options{})
	for _, asked := range []string{`{"loopbackPorts":[],"allowLocalBinding":false}`, "null"} {
		p := shell("a", "true")
		p.ManagedNetwork = []byte(asked)
		_, err := r.Start(t.Context(), p)
		var refused *execclient.Error
		if is := errors.As(err, &refused) && refused.Code == exec.CodeInvalidParams; is != (asked != "null") {
			t.Errorf("%s: %v", asked, err)
		}
	}
}

// TestStartsHoldFewThreads: processes that start at once wait for one lock of the
// runtime, and not each with a thread in hand.
func TestStartsHoldFewThreads(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	const many = 200
	clients := make([]*remote, many)
	for i := range clients {
		clients[i] = connect(t, url, execclient.Options{})
	}
	threads := func() int {
		all, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	before := threads()
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			p, err := c.Start(t.Context(), shell("a", "exit 0"))
			if err == nil {
				_, err = p.Wait(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if after := threads(); after > before+many/8 {
		t.Fatalf("%d threads before %d starts, %d after", before, many, after)
	}
}

// TestFrameLimits sends the sizes that the recording of the limits sent.
func TestFrameLimits(t *testing.T) {
	url, _ := serve(t, execserver.Config{})
	other := handshake(t, url)
	message := func(mib float64) []byte {
		return append(append([]byte(`{"id":7,"method":"environment/status","params":{},"pad":"`), bytes.Repeat([]byte("x"), int(mib*(1<<20)))...), '"', '}')
	}
	w := handshake(t, url)
	w.send(message(15.9), false)
	if m := <-w.in; string(m.ID) != "7" || m.Error != nil {
		t.Fatalf("15.9 MiB in one frame: %+v", m)
	}
	_ = w.c.Write(context.Background(), websocket.MessageText, message(20))
	if !w.isClosed(10 * time.Second) {
		t.Error("20 MiB in one frame was taken")
	}
	w = handshake(t, url)
	out, err := w.c.Writer(context.Background(), websocket.MessageText)
	if err != nil {
		t.Fatal(err)
	}
	whole := message(40)
	for len(whole) > 0 { // every Write is a frame
		n := min(8<<20, len(whole))
		if _, err := out.Write(whole[:n]); err != nil {
			t.Fatal(err)
		}
		whole = whole[n:]
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if m := <-w.in; string(m.ID) != "7" || m.Error != nil {
		t.Fatalf("40 MiB in frames of 8: %+v", m)
	}
	_ = w.c.Write(context.Background(), websocket.MessageText, message(65))
	if !w.isClosed(10 * time.Second) {
		t.Error("65 MiB was taken")
	}
	other.send([]byte(`{"id":8,"method":"environment/status"}`), false)
	if m := <-other.in; string(m.ID) != "8" || m.Error != nil {
		t.Fatalf("another session was disturbed: %+v", m)
	}
}
