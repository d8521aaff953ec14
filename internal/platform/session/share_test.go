package session_test

import (
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// A share link is for one thread of its maker, is no token of another kind, and ends.
func TestShareLinks(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		now, db := time.Now(), open(t)
		m := session.New(db.LoginSessions(), func() time.Time { return now })
		threads, err := thread.New(thread.Config{Store: db.Threads()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = threads.Close(ctx) })
		th, err := threads.Create(ctx, thole.LocalActor, thread.Create{Settings: event.Settings{Provider: "test"}})
		if err != nil {
			t.Fatal(err)
		}
		value, share, err := m.NewShare(ctx, thole.LocalUser, th.ID, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if got := must(m.Shared(ctx, value))(t); got.ID != share.ID || got.Thread != th.ID || got.User != thole.LocalUser {
			t.Errorf("shared: %+v", got)
		}
		for _, id := range []thole.ThreadID{"", th.ID} {
			if all := must(m.Shares(ctx, thole.LocalUser, id))(t); len(all) != 1 || all[0].Secret != "" || all[0].LastUsedAt.IsZero() {
				t.Errorf("share links of %q: %+v", id, all)
			}
		}
		_, err = m.Bearer(ctx, value)
		code(t, err, thole.CodeUnauthorized)
		_, _, err = m.Redeem(ctx, value, "")
		code(t, err, thole.CodeUnauthorized)
		token, _, err := m.NewToken(ctx, thole.LocalUser, session.Grant{Name: "t"})
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []string{"", token, value + "x", "tholeshare_", share.Hash, "tholeshare_" + share.Hash} {
			_, err = m.Shared(ctx, wrong)
			code(t, err, thole.CodeUnauthorized)
		}
		const other = thole.SystemUser
		_, _, err = m.NewShare(ctx, other, th.ID, 0)
		code(t, err, thole.CodeNotFound)
		code(t, m.EndShare(ctx, other, share.ID), thole.CodeNotFound)
		held, done := m.Hold(ctx, share.ID)
		defer done()
		now = now.Add(time.Hour)
		_, err = m.Shared(ctx, value)
		code(t, err, thole.CodeUnauthorized)
		if err := m.Sweep(ctx); err != nil || held.Err() == nil {
			t.Errorf("sweep: %v, its readers go on: %v", err, held.Err() == nil)
		}
		value, _, err = m.NewShare(ctx, thole.LocalUser, th.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := threads.Delete(ctx, thole.LocalActor, th.ID); err != nil {
			t.Fatal(err)
		}
		_, err = m.Shared(ctx, value)
		code(t, err, thole.CodeUnauthorized)
	})
}
