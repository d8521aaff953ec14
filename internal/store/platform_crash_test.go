package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	login "github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/crash"
)

var platformStart = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// platform is a store with the rows of logins and of repeated requests.
type platform struct {
	*store.DB
	ctx context.Context
	now time.Time
}

func openPlatform(dir string, hook sqldb.Hook) (*platform, error) {
	p := &platform{ctx: context.Background(), now: platformStart}
	var err error
	p.DB, err = store.Open(p.ctx, sqldb.Config{Path: dir + "/thole.db", Hook: hook, Now: func() time.Time { return p.now }})
	return p, err
}

func (p *platform) State() (string, error) {
	return crash.Rows(p.DB, "login_codes", "web_sessions", "api_tokens", "idempotency_keys", "thread_defaults")
}

func session(hash string) login.Session {
	return login.Session{Hash: hash, Proof: "proof", ID: "id-" + hash, Scope: login.ScopeAct, Ends: platformStart.Add(10 * time.Hour), User: login.User{ID: thole.LocalUser}, Client: "browser", Created: platformStart, Seen: platformStart, Expires: platformStart.Add(time.Hour)}
}

func (p *platform) redeem(as string) error {
	got, found, err := p.LoginSessions().Redeem(p.ctx, "code", session(as))
	if err == nil && (!found || got.User.ID != thole.LocalUser) {
		err = fmt.Errorf("redeem: found %v, %+v", found, got)
	}
	return err
}

func (p *platform) begin(key, result string, fresh bool) error {
	got, isFresh, err := p.Idempotency().Begin(p.ctx, thole.LocalUser, "scope", key)
	if err == nil && (got != result || isFresh != fresh) {
		err = fmt.Errorf("begin %s: %q, fresh %v; want %q, fresh %v", key, got, isFresh, result, fresh)
	}
	return err
}

func one(ended []string, err error) error {
	if err == nil && len(ended) != 1 {
		err = fmt.Errorf("ended %v", ended)
	}
	return err
}

func (p *platform) Acts() []crash.Act {
	s, keys := p.LoginSessions(), p.Idempotency()
	token := login.Token{Hash: "token", ID: "t1", Scope: login.ScopeAct, User: login.User{ID: thole.LocalUser}, Name: "ci", Created: platformStart}
	return []crash.Act{
		{Name: "add_login", Do: func() error { return s.AddLogin(p.ctx, "code", thole.LocalUser, platformStart.Add(time.Minute)) }},
		{Name: "redeem", Do: func() error { return p.redeem("redeemed") }},
		{Name: "use code", Set: func() error {
			return s.AddLogin(p.ctx, "confirm", thole.LocalUser, platformStart.Add(time.Minute))
		}, Do: func() error {
			used, err := s.UseCode(p.ctx, "confirm", thole.LocalUser, platformStart)
			if err == nil && !used {
				err = errors.New("the code was not there")
			}
			return err
		}},
		{Name: "add", Do: func() error { return s.AddSession(p.ctx, session("added")) }},
		{Name: "renew", Do: func() error {
			return s.RenewSession(p.ctx, "redeemed", platformStart.Add(time.Minute), platformStart.Add(9*time.Hour))
		}},
		{Name: "remove", Do: func() error { return one(s.EndSession(p.ctx, thole.LocalUser, "id-added")) }},
		{Name: "add_token", Do: func() error { return s.AddToken(p.ctx, token, 1, "") }},
		{Name: "see_token", Do: func() error { return s.SeeToken(p.ctx, "token", platformStart.Add(time.Minute)) }},
		{Name: "remove_token", Do: func() error { return one(s.EndToken(p.ctx, thole.LocalUser, "t1")) }},
		{Name: "begin", Do: func() error { return p.begin("key", "", true) }},
		{Name: "begin refused", Do: func() error { return p.begin("refused", "", true) }},
		{Name: "finish", Do: func() error { return keys.Finish(p.ctx, thole.LocalUser, "scope", "key", "made") }},
		{Name: "forget", Do: func() error { return keys.Forget(p.ctx, thole.LocalUser, "scope", "refused") }},
		{Name: "choose", Do: func() error {
			return p.Defaults().Save(p.ctx, thole.LocalUser, event.Settings{Provider: "one", Model: "m"})
		}},
		{Name: "choose again", Do: func() error {
			return p.Defaults().Save(p.ctx, thole.LocalUser, event.Settings{Provider: "two", Effort: "high"})
		}},
		{Name: "sweep", Set: func() error {
			return s.AddLogin(p.ctx, "forgotten", thole.LocalUser, platformStart.Add(time.Minute))
		}, Do: func() error { _, err := s.Sweep(p.ctx, platformStart.Add(2*time.Hour)); return err }},
	}
}

// TestPlatformRowsSurviveAKill: a login code that was redeemed works no second
// time and its session is there; what was revoked stays revoked; a key gives the
// first result and nothing else.
func TestPlatformRowsSurviveAKill(t *testing.T) {
	crash.Acts(t, openPlatform, func(t *testing.T, p *platform, done []string) {
		has := func(act string) bool { return slices.Contains(done, act) }
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		s := p.LoginSessions()
		// A code and its session change hands together: exactly one of them works.
		if has("add_login") && !has("redeem") {
			ok(p.redeem("late"))
		}
		if _, found, err := s.Redeem(p.ctx, "code", session("thief")); err != nil || found {
			t.Errorf("a code that was used up: found %v, %v", found, err)
		}
		if _, found, err := s.Session(p.ctx, "thief", platformStart); err != nil || found {
			t.Errorf("a session from a used code: found %v, %v", found, err)
		}
		if has("use code") {
			if used, err := s.UseCode(p.ctx, "confirm", thole.LocalUser, platformStart); err != nil || used {
				t.Errorf("a code that was used up: %v, %v", used, err)
			}
		}
		got, found, err := s.Session(p.ctx, "redeemed", platformStart)
		ok(err)
		if found != has("redeem") {
			t.Errorf("after %v: session found %v", done, found)
		}
		if has("renew") && !got.Expires.Equal(platformStart.Add(9*time.Hour)) {
			t.Errorf("a renewed session ends %v", got.Expires)
		}
		_, found, err = s.Session(p.ctx, "added", platformStart)
		ok(err)
		if want := has("add") && !has("remove"); found != want {
			t.Errorf("after %v: the other session found %v", done, found)
		}
		token, found, err := s.Token(p.ctx, "token", platformStart)
		ok(err)
		if want := has("add_token") && !has("remove_token"); found != want || want && token.Seen.IsZero() == has("see_token") {
			t.Errorf("after %v: token found %v, %+v", done, found, token)
		}
		if has("remove_token") { // its place under the limit is free again
			ok(s.AddToken(p.ctx, login.Token{Hash: "new", ID: "t2", Scope: login.ScopeAct, User: login.User{ID: thole.LocalUser}, Name: "ci", Created: platformStart}, 1, ""))
		}
		checkKeys(t, p, has)
		def, err := p.Defaults().Load(p.ctx, thole.LocalUser)
		ok(err)
		want := "//"
		switch {
		case has("choose again"):
			want = "two//high"
		case has("choose"):
			want = "one/m/"
		}
		if got := def.Provider + "/" + def.Model + "/" + def.Effort; got != want {
			t.Errorf("after %v: new threads start with %s, want %s", done, got, want)
		}
		if has("sweep") {
			if _, found, err := s.Redeem(p.ctx, "forgotten", session("x")); err != nil || found {
				t.Errorf("an expired code: found %v, %v", found, err)
			}
		}
		for range 2 { // everything expires, and saying so twice is harmless
			_, err := s.Sweep(p.ctx, platformStart.Add(1000*time.Hour))
			ok(err)
		}
		ok(p.begin("key", "", true))
	})
}

// checkKeys: a claimed key is nobody else's until its request was refused, and
// its first result stands.
func checkKeys(t *testing.T, p *platform, has func(string) bool) {
	result := ""
	if has("finish") {
		result = "made"
	}
	repeat := func(key, result string, fresh bool) {
		t.Helper()
		if err := p.begin(key, result, fresh); err != nil {
			t.Error(err)
		}
	}
	repeat("key", result, !has("begin"))
	repeat("refused", "", !has("begin refused") || has("forget"))
	for _, other := range []string{"first", "second"} {
		if err := p.Idempotency().Finish(p.ctx, thole.LocalUser, "scope", "key", other); err != nil {
			t.Error(err)
		}
	}
	if !has("finish") {
		result = "first"
	}
	repeat("key", result, false)
	if err := p.Idempotency().Forget(p.ctx, thole.LocalUser, "scope", "key"); err != nil {
		t.Error(err)
	}
	repeat("key", result, false) // what acted is not forgotten
}
