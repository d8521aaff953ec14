package store_test

import (
	"context"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// The sources of threads are there for as long as one of them is: the thread itself, or a
// fork of it.
func TestSourcesOfThreads(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db, ctx, me := open(t), context.Background(), thole.LocalActor
		m, err := thread.New(thread.Config{Store: db.Threads()})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(ctx)
		if _, err := m.Create(ctx, me, thread.Create{}); err != nil {
			t.Fatal(err)
		}
		from := thole.Source{Kind: thole.SourceBranch, Repo: "/a b", Commit: "c", Objects: []string{"/a b/.git/objects"}}
		th, err := m.Create(ctx, me, thread.Create{Files: from})
		if err != nil {
			t.Fatal(err)
		}
		fork, err := m.Fork(ctx, me, th.ID, thread.Fork{})
		if err != nil {
			t.Fatal(err)
		}
		for _, gone := range []thole.ThreadID{th.ID, fork.ID} {
			list, err := db.Threads().Sources(ctx)
			if err != nil || len(list) != 1 || list[0].Repo != from.Repo || list[0].Objects[0] != from.Objects[0] {
				t.Fatalf("before %s goes: %+v, %v", gone, list, err)
			}
			if err := m.Delete(ctx, me, gone); err != nil {
				t.Fatal(err)
			}
		}
		if list, err := db.Threads().Sources(ctx); err != nil || len(list) != 0 {
			t.Errorf("afterwards: %+v, %v", list, err)
		}
	})
}
