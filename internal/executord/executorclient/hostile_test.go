//go:build linux

package executorclient

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/testkit/memory"
	"github.com/tholehq/thole/internal/testkit/usurper"
)

func TestMain(m *testing.M) {
	usurper.Main()
	os.Exit(m.Run())
}

// Whatever an executor answers, the owner gets an error that says what is wrong, follows nobody
// elsewhere and holds at most 64 MiB more.
func TestAHostileExecutord(t *testing.T) {
	var visits atomic.Int64
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer canary.Close()
	base := usurper.Usurper{Elsewhere: canary.URL}.Start(t)

	status := func(c *Client) error { _, err := c.Status(t.Context()); return err }
	seen := 0
	events := func(c *Client) error {
		seen = 0
		return c.Events(t.Context(), "run", 0, func(b []wire.LogEvent) error { seen += len(b); return nil })
	}
	for name, try := range map[string]struct {
		do     func(*Client) error
		beyond bool
	}{
		"endless line": {events, true}, "endless answer": {status, true}, "deep answer": {status, true}, "many events": {events, true}, "future cursor": {events, true},
		"cursor twice": {events, true}, "redirect": {status, false}, "huge headers": {status, false}, "drip": {status, false},
		"wrong ids": {func(c *Client) error {
			_, err := c.Run(t.Context(), wire.RunRequest{For: "turn", Thread: "thread"})
			return err
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			debug.FreeOSMemory()
			before := memory.Peak(t, true)
			c := Dial(base, name)
			defer c.Close()
			if name == "drip" {
				c.soon = 200 * time.Millisecond
			}
			err := try.do(c)
			if err == nil || try.beyond != errors.Is(err, ErrBeyond) {
				t.Errorf("the client says %v", err)
			}
			if grew := memory.Peak(t, false) - before; grew > 64<<10 {
				t.Errorf("the client took %d MiB", grew>>10)
			} else {
				t.Logf("%d MiB, %.160v", grew>>10, err)
			}
			if seen > MaxEvents {
				t.Errorf("%d events were taken", seen)
			}
		})
	}
	if visits.Load() > 0 {
		t.Error("a redirect was followed")
	}
}
