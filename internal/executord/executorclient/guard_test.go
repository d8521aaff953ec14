package executorclient

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonhttp"
)

// A call on an executord that was stopped ends by itself, before its answer as well
// as in the middle of a stream; one that only takes long does not.
func TestCallsOnAnExecutordThatFallsSilent(t *testing.T) {
	t.Parallel()
	var probes, silent atomic.Int64
	over := make(chan struct{})
	enough := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case silent.Load() != 0:
			<-over
		case r.URL.Path == "/healthz":
			if probes.Add(1) == maxSilent+1 {
				close(enough)
			}
		case r.URL.Path == "/status":
			<-enough
			jsonhttp.Write(w, http.StatusOK, wire.Status{Boot: "b"})
		default:
			_ = http.NewResponseController(w).Flush()
			silent.Store(1)
			<-over
		}
	}))
	defer srv.Close()
	defer close(over)
	c := Dial(srv.URL, "token")
	defer c.Close()
	c.probe = 400 * time.Millisecond
	if st, err := c.Status(t.Context()); err != nil || st.Boot != "b" {
		t.Errorf("a call that took long: %+v, %v", st, err)
	}
	if err := c.Events(t.Context(), "r", 0, nil); thole.CodeOf(err) != thole.CodeUnavailable {
		t.Errorf("a stream that fell silent: %v", err)
	}
	if _, err := c.Run(t.Context(), wire.RunRequest{}); !errors.Is(err, errSilent) {
		t.Errorf("a call on a silent executord: %v", err)
	}
}
