package appserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/appserver"
	"github.com/tholehq/thole/internal/jsonrpc"
)

// A client that stops reading is given up, and reads why when it reads again; the
// others lose nothing and the thread does not wait.
func TestStalledReaderIsClosed(t *testing.T) {
	b := newBare(t, nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reader := b.join()
	id := reader.thread(`{}`)
	var stalled []jsonrpc.Stream
	for _, at := range []string{"unix://" + filepath.Join(t.TempDir(), "s.sock"), "ws://127.0.0.1:0"} {
		s := stall(t, ctx, b.listen(at), id)
		defer s.Close("")
		stalled = append(stalled, s)
	}
	ref := b.turn(id, "x")
	from := reader.len()
	for i := 0; b.server.Connections() > 1; i++ {
		if i == 1000 { // more than buffers of sockets, a connection and a subscription can hold
			t.Fatal("a client that does not read is still connected")
		}
		b.report(ref, says(fmt.Sprint(i), strings.Repeat("z", 60_000)))
		from, _ = reader.note(from, "item/completed")
		from++
	}
	for i, s := range stalled {
		var err error
		for n := 0; err == nil; n++ {
			_, err = s.Read(ctx)
		}
		if !strings.Contains(err.Error(), appserver.ReasonSlow) || !errors.Is(err, io.EOF) {
			t.Errorf("client %d read %v, want the reason", i, err)
		}
	}
}

// memory is what the last collection found alive: what others allocate meanwhile
// does not count.
func memory() int64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return int64(live[0].Value.Uint64())
}
