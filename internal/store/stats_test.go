package store_test

import (
	"context"
	"slices"
	"testing"

	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
)

func TestStatsCountWhatIsOpen(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		add(t, db.Queue(), 1, 1, 1, 0)
		add(t, db.Queue(), 2, 2, 1, 0)
		if _, err := db.Executors().Ensure(context.Background(), wantExecutor(1, 1)); err != nil {
			t.Fatal(err)
		}
		got, err := db.Stats(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []store.Count{{Kind: "turn", State: "ready", Rows: 2}, {Kind: "executor", State: "creating", Rows: 1}} {
			if !slices.Contains(got, want) {
				t.Errorf("no %+v in %+v", want, got)
			}
		}
	})
}
