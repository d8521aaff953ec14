package store_test

import (
	"context"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// What a user's threads worked on is listed once, the last used first, and threads are
// found by where their agents work.
func TestUsedSources(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db, ctx, me := open(t), context.Background(), thole.LocalActor
		now := time.Now()
		m, err := thread.New(thread.Config{Store: db.Threads(), Now: func() time.Time { now = now.Add(time.Second); return now }})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(ctx)
		made := map[string]thole.ThreadID{}
		for _, c := range []struct {
			name string
			thread.Create
		}{
			{"label", thread.Create{Settings: event.Settings{Dir: "/a/label"}}},
			{"none", thread.Create{}},
			{"branch", thread.Create{Files: thole.Source{Kind: thole.SourceBranch, Repo: "/repo", Dir: "web"}}},
			{"here", thread.Create{Files: thole.Source{Kind: thole.SourceHere, Dir: "/work"}}},
			{"again", thread.Create{Files: thole.Source{Kind: thole.SourceBranch, Repo: "/repo"}}},
			{"upload", thread.Create{Files: thole.Source{Kind: thole.SourceUpload, Upload: "u1"}}},
		} {
			th, err := m.Create(ctx, me, c.Create)
			if err != nil {
				t.Fatal(err)
			}
			made[c.name] = th.ID
		}
		used, err := db.Index().Sources(ctx, me.User, 10)
		if err != nil || len(used) != 2 || used[0].At != "/repo" || used[0].Kind != thole.SourceBranch || used[1].At != "/work" || !used[0].Used.After(used[1].Used) {
			t.Errorf("used: %+v, %v", used, err)
		}
		if other, err := db.Index().Sources(ctx, "another", 10); err != nil || len(other) != 0 {
			t.Errorf("of another user: %+v, %v", other, err)
		}
		for dir, want := range map[string][]string{"/workspace": {"upload", "again", "none"}, "/workspace/web": {"branch"}, "/work": {"here"}, "/a/label": {"label"}, "/repo": {}} {
			page, err := m.List(ctx, me, thread.Filter{Dirs: []string{dir}, Sort: "created", PageParams: thread.PageParams{Desc: true}})
			if err != nil || len(page.Items) != len(want) {
				t.Errorf("threads in %s: %+v, %v", dir, page.Items, err)
				continue
			}
			for i, name := range want {
				if page.Items[i].ID != made[name] || page.Items[i].WorkDir() != dir {
					t.Errorf("thread %d in %s is %+v, want that of %s", i, dir, page.Items[i], name)
				}
			}
		}
		for upload, want := range map[string]bool{"u1": true, "u2": false} {
			if needed, err := db.Index().UploadNeeded(ctx, me.User, upload); err != nil || needed != want {
				t.Errorf("upload %s is needed: %v, %v", upload, needed, err)
			}
		}
		if err := m.Delete(ctx, me, made["upload"]); err != nil {
			t.Fatal(err)
		}
		if needed, err := db.Index().UploadNeeded(ctx, me.User, "u1"); err != nil || needed {
			t.Errorf("after its thread: %v, %v", needed, err)
		}
	})
}
