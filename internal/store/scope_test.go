package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/authz/authztest"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
	"pgregory.net/rapid"
)

// peopled has a thread of every user of the worlds in every project.
func peopled(t *testing.T, db *store.DB) map[thole.ThreadID]thole.Owner {
	t.Helper()
	if err := db.Update(t.Context(), "test.people", func(tx *sqldb.Tx) error {
		for i, u := range authztest.Users {
			if _, err := tx.Exec(`insert into users (id, login, name, state, created_at) values ($1, $2, '', 'active', 0)`, u, fmt.Sprint("user", i)); err != nil {
				return err
			}
		}
		for i, p := range authztest.Places[1:] {
			if _, err := tx.Exec(`insert into apps (id, name, created_at) select $1, $2, 0 where not exists (select 1 from apps where id = $1)`, string(p.App), "app of "+string(p.App)); err != nil {
				return err
			}
			if _, err := tx.Exec(`insert into projects (id, app_id, name, created_at) values ($1, $2, $3, 0)`, p.Project, p.App, fmt.Sprint("project", i)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	m, err := thread.New(thread.Config{Store: db.Threads()})
	if err != nil {
		t.Fatal(err)
	}
	all := map[thole.ThreadID]thole.Owner{}
	for o := range authztest.Owners() {
		th, err := m.Create(t.Context(), thole.Actor{User: o.User, Via: "system"}, thread.Create{Owner: o, Settings: event.Settings{Provider: "test", Profile: thole.ProfileAsk}})
		if err != nil {
			t.Fatal(err)
		}
		all[th.ID] = o
	}
	return all
}

// A list has what Can allows and nothing else, on both engines and in any world.
func TestListIsWhatCanAllows(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		all := peopled(t, db)
		began := time.Now()
		rapid.Check(t, func(rt *rapid.T) {
			if time.Since(began) > 2*time.Second { // enough worlds for one run
				return
			}
			s := authztest.Subject(rt)
			a := rapid.SampledFrom(authz.Actions()).Draw(rt, "action")
			rows, err := db.Threads().Threads(t.Context(), thread.ThreadQuery{Scope: authz.ScopeOf(s, a), Limit: 1000})
			if err != nil {
				rt.Fatal(err)
			}
			var want, got []thole.ThreadID
			for id, o := range all {
				if ok, _ := authz.Can(s, a, authz.Of(o)); ok {
					want = append(want, id)
				}
			}
			for _, r := range rows {
				got = append(got, r.Thread.ID)
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				rt.Fatalf("%s lists %d threads, Can allows %d: %v, %v\n%+v", a, len(got), len(want), got, want, s)
			}
		})
		rows, err := db.Threads().Waiting(t.Context(), thread.WaitingQuery{Scope: authz.ScopeOf(authz.Subject{User: authztest.Users[0], Active: true}, authz.RunThread), Limit: 10})
		if err != nil || len(rows) != 0 {
			t.Errorf("a joined list: %v, %v", rows, err)
		}
	})
}
