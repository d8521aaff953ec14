package dispatch_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/store/storetest"
)

// always is a driver whose executords are reached through the proxy also when they are found
// again.
type always struct{ *fronted }

func (d always) Inspect(ctx context.Context, id thole.ExecutorID) (executor.Info, error) {
	info, err := d.fronted.Inspect(ctx, id)
	info.Endpoint = d.url
	return info, err
}

// A turn whose runs end because something was changed from outside goes on, more often than
// one whose executor is lost again and again; the thread says why.
func TestATurnThatMoves(t *testing.T) {
	t.Parallel()
	const why = "a file was changed from outside"
	for _, again := range []string{why, ""} {
		var ends atomic.Int64
		d, through := front(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			answer := httptest.NewRecorder()
			switch {
			case strings.HasSuffix(r.URL.Path, "/events") && ends.Add(1) <= 5:
				next.ServeHTTP(answer, r) // to the run's end, of which nobody hears
			case r.URL.Path == "/status":
				next.ServeHTTP(answer, r)
				var st wire.Status
				if err := json.Unmarshal(answer.Body.Bytes(), &st); err != nil {
					t.Error(err)
				}
				for i := range st.Runs {
					st.Runs[i].Again = again
				}
				_ = json.NewEncoder(w).Encode(st)
			default:
				next.ServeHTTP(w, r)
			}
		})
		r := newWorld(t).rig(t, storetest.SQLite(t), func(c *dispatch.Config) { through(c); c.Driver = always{d} })
		id := r.thread()
		got := r.settled(id, r.start(id, "sim: say done"))
		if want := map[string]thole.Outcome{why: thole.OutcomeCompleted, "": thole.OutcomeFailed}[again]; got.Outcome != want {
			t.Errorf("%q: %s after %d runs", again, got.Outcome, ends.Load())
		}
	}
}
