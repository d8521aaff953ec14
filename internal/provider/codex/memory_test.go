package codex

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

// Ten megabytes of a command's output pass from the pipe to events while the
// driver holds next to nothing of them.
func TestOutputStreamsInBoundedMemory(t *testing.T) {
	const total, piece = 10 << 20, 16 << 10
	r, w := io.Pipe()
	requests, out := io.Pipe()
	ready := make(chan struct{})
	go func() {
		asked := bufio.NewReader(requests)
		_, _ = asked.ReadString('\n') // an answer before its question is nobody's
		go func() { _, _ = io.Copy(io.Discard, asked) }()
		fmt.Fprintln(w, `{"id":1,"result":{"userAgent":"x"}}`)
		<-ready
		fmt.Fprintln(w, `{"method":"item/started","params":{"threadId":"t","turnId":"u","item":{"type":"commandExecution","id":"c","command":"cat big","status":"inProgress"}}}`)
		line := `{"method":"item/commandExecution/outputDelta","params":{"threadId":"t","turnId":"u","itemId":"c","delta":"` + strings.Repeat("x", piece) + "\"}}\n"
		for range total / piece {
			_, _ = io.WriteString(w, line)
		}
		fmt.Fprintln(w, `{"method":"item/completed","params":{"threadId":"t","turnId":"u","item":{"type":"commandExecution","id":"c","command":"cat big","status":"completed","exitCode":0}}}`)
		w.Close()
	}()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var told int64
	var peak uint64
	var done *event.Command
	base := heap()
	em := provider.NewEmitter(testTurn, func(e event.Event) {
		switch e.Kind {
		case event.ItemDelta:
			if e.Offset != told {
				t.Fatalf("offset %d after %d bytes", e.Offset, told)
			}
			if told += int64(len(e.Delta)); told%(1<<20) == 0 {
				peak = max(peak, heap())
			}
		case event.ItemCompleted:
			done = e.Item.Command
		}
	})
	d := newDecoder(em, "t", "/workspace")
	d.turn = "u"
	c, err := appclient.Pipe(t.Context(), r, out, appclient.Options{Name: "test", OnNotification: func(n appclient.Notification) { d.notification(n.Method, n.Params) }})
	if err != nil {
		t.Fatal(err)
	}
	close(ready)
	<-c.Done()
	if told != total {
		t.Fatalf("%d bytes were told", told)
	}
	if done == nil || len(done.Output) > provider.OutputLimit || int64(len(done.Output))+done.OutputDropped != total {
		t.Fatalf("kept %d bytes, dropped %d", len(done.Output), done.OutputDropped)
	}
	if grown := int64(peak) - int64(base); grown > 1<<20 {
		t.Errorf("%d kB of heap held in the middle of %d kB", grown>>10, total>>10)
	}
}
