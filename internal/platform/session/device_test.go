package session_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/unguarded"
)

var person = session.Maker{ID: "login", Scope: session.ScopeAdmin, Fresh: true}

// A program is let in once, by a person, in time, and for no more than the person may do.
func TestProgramsAreLetInOnce(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		now := time.Now()
		m := session.New(open(t).LoginSessions(), func() time.Time { return now })
		ask := func(name string) (token, hash, code string) {
			token, hash = session.DeviceToken()
			return token, hash, must(m.AddDevice(ctx, session.Device{Name: name, Token: hash, Scope: session.ScopeAct, Address: "192.0.2.1"}))(t)
		}
		state := func(hash string, want session.DeviceState) {
			t.Helper()
			if got := must(m.DeviceState(ctx, hash))(t); got != want {
				t.Errorf("the program is %s, want %s", got, want)
			}
		}
		token, hash, shown := ask("thole\x1b[2J on box\n")
		state(hash, session.DeviceWaits)
		d := must(m.Device(ctx, strings.ToLower(strings.ReplaceAll(shown, "-", " "))))(t)
		if d.Name != "thole[2J on box" || d.Address != "192.0.2.1" || d.Scope != session.ScopeAct {
			t.Errorf("a person is shown %+v", d)
		}
		_, err := m.Bearer(ctx, token)
		code(t, err, thole.CodeUnauthorized)
		_, err = m.EndDevice(ctx, thole.LocalUser, session.Maker{ID: "login", Scope: session.ScopeRead, Fresh: true}, shown, true)
		code(t, err, thole.CodeForbidden)
		var in atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := m.EndDevice(ctx, thole.LocalUser, person, shown, true); err == nil {
					in.Add(1)
				}
			})
		}
		if wg.Wait(); in.Load() != 1 {
			t.Errorf("let in %d times", in.Load())
		}
		state(hash, session.DeviceConfirmed)
		if got := must(m.Bearer(ctx, token))(t); got.User.ID != thole.LocalUser || got.Scope != session.ScopeAct || got.Expires.IsZero() {
			t.Errorf("the token is %+v", got)
		}
		_, err = m.AddDevice(ctx, session.Device{Name: "again", Token: hash}) // the sum of a token that works already
		code(t, err, thole.CodeConflict)

		_, hash, shown = ask("refused")
		if _, err := m.EndDevice(ctx, thole.LocalUser, session.Maker{}, shown, false); err != nil {
			t.Error(err)
		}
		state(hash, session.DeviceGone)
		_, err = m.Device(ctx, shown)
		code(t, err, thole.CodeNotFound)

		_, hash, shown = ask("late")
		now = now.Add(session.DeviceLife)
		state(hash, session.DeviceGone)
		_, err = m.EndDevice(ctx, thole.LocalUser, person, shown, true)
		code(t, err, thole.CodeNotFound)

		for i := range 10 {
			ask(fmt.Sprint("many ", i))
		}
		_, hash = session.DeviceToken()
		_, err = m.AddDevice(ctx, session.Device{Name: "one more", Token: hash, Address: "192.0.2.1"})
		code(t, err, thole.CodeOverloaded)
		for _, bad := range []session.Device{{Token: hash}, {Name: "n", Token: "x"}, {Name: "n", Token: hash, Scope: session.ScopeJobs}, {Name: "n", Token: strings.ToUpper(hash)}} {
			_, err = m.AddDevice(ctx, bad)
			code(t, err, thole.CodeInvalid)
		}
	})
}

func TestAStolenSecretLetsNoProgramIn(t *testing.T) {
	m := session.New(storetest.SQLite(t).LoginSessions(), nil)
	_, hash := session.DeviceToken()
	shown := must(m.AddDevice(ctx, session.Device{Name: "evil", Token: hash, Scope: session.ScopeAdmin}))(t)
	if _, err := m.EndDevice(ctx, thole.LocalUser, session.Maker{ID: "stolen", Scope: session.ScopeAdmin}, shown, true); (err == nil) != unguarded.Build {
		t.Errorf("with a stolen login: %v", err)
	}
}
