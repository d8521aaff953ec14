package appserver_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/transport/ws"
)

// A client that stops reading is closed with its reason; the others lose nothing
// and the thread does not wait.
func TestStalledReaderIsClosed(t *testing.T) {
	rig := tholetest.New(t)
	addr := rig.Listen("unix://"+filepath.Join(t.TempDir(), "s.sock"), "")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	stalled, err := ws.Dial(ctx, addr, ws.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Close("")
	reader := join(t, rig, `{}`)
	id := reader.thread(`{"approvalPolicy":"never","sandbox":"danger-full-access"}`)
	for _, m := range []string{
		`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"stalled","version":"1"}}}`,
		`{"id":2,"method":"thread/resume","params":{"threadId":"` + id + `"}}`,
	} {
		if err := stalled.Write(ctx, []byte(m)); err != nil {
			t.Fatal(err)
		}
		if _, err := stalled.Read(ctx); err != nil {
			t.Fatal(err)
		}
	}
	before := memory()
	// Twice what buffers of a socket, a connection and a subscription can hold.
	body := strings.Repeat("y", 1<<10)
	from := reader.len()
	for i := range 40 {
		reader.turn(id, fmt.Sprintf("sim: say %s\\n%d ;; run head -c 60000 /dev/zero | tr '\\0' z", body, i))
		from, _ = reader.note(from, "turn/completed")
		from++
	}
	poll.Until(t, "the end of the stalled connection", func() bool { return rig.Server.Connections() == 1 })
	t.Logf("memory grew by %d KiB while one client stalled", (memory()-before)/1024)
	for {
		if _, err := stalled.Read(ctx); err != nil {
			break
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
