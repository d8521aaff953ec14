package dispatch_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/executord/executorclient"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/store/storetest"
)

// An executord that dies after its agent came to the end takes nothing with it:
// what nobody had read yet is read from its log, and nothing is run twice.
func TestWhatADeadExecutordHadRecordedIsRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	held, over := make(chan struct{}), make(chan struct{})
	var once sync.Once
	d, through := front(t, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			once.Do(func() { close(held) })
			<-over
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
	r := newWorld(t).rig(t, storetest.SQLite(t), through)
	id := r.thread()
	turn := r.start(id, "sim: run echo once >> runs.txt ;; say done")
	<-held
	row := r.row(id)
	info, err := d.Driver.Inspect(ctx, row.ID)
	if err != nil {
		t.Fatal(err)
	}
	c := executorclient.Dial(info.Endpoint, info.Token)
	defer c.Close()
	waitFor(t, func() bool {
		st, err := c.Status(ctx)
		return err == nil && len(st.Runs) == 1 && st.Runs[0].State == wire.RunEnded
	})
	if err := d.Driver.Stop(ctx, row.ID); err != nil {
		t.Fatal(err)
	}
	d.url = info.Endpoint // its successor is reached directly
	close(over)
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted || got.Run != 0 || !strings.Contains(r.said(id, turn), "done") {
		t.Errorf("%+v said %q", got, r.said(id, turn))
	}
	turn = r.start(id, "sim: run cat runs.txt")
	if r.settled(id, turn); strings.Count(r.said(id, turn), "once") != 1 {
		t.Errorf("it ran %q", r.said(id, turn))
	}
}

// A run is not begun again under its own name in another executor: its events
// would be taken for those that the thread has.
func TestARunWhoseExecutorWentWhileNobodyLooked(t *testing.T) {
	t.Parallel()
	w, db := newWorld(t), storetest.SQLite(t)
	r := w.rig(t, db)
	id := r.thread()
	r.settled(id, r.start(id, "sim: say hello"))
	turn := r.start(id, "sim: say before ;; wait 10m ;; say after")
	r.until(id, func(e event.Event) bool {
		return e.Turn == turn && e.Kind == event.ItemCompleted && e.Data.Item.Text == "before"
	})
	row, err := db.Executors().OfThread(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	r.halt()
	if err := r.driver.Remove(context.Background(), row.ID); err != nil {
		t.Fatal(err)
	}
	r = w.rig(t, db)
	if got := r.settled(id, turn); got.Outcome != thole.OutcomeCompleted || got.Run != 1 {
		t.Errorf("%+v said %q", got, r.said(id, turn))
	}
}
