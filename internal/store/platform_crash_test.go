package store_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/audit"
	login "github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
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
	p.DB, err = storetest.OpenAt(p.ctx, sqldb.Config{Path: dir + "/thole.db", Hook: hook, Now: func() time.Time { return p.now }})
	return p, err
}

var holders = regexp.MustCompile(`holder=\S+ `)

func (p *platform) State() (string, error) {
	rows, err := crash.Rows(p.DB, "login_codes", "web_sessions", "api_tokens", "share_links", "spent_proofs", "device_logins", "idempotency_keys", "thread_defaults", "audit_events", "audit_head")
	return holders.ReplaceAllString(rows, "holder=one "), err // each process has its own
}

func session(hash string) login.Session {
	return login.Session{Hash: hash, Proof: "proof", ID: "id-" + hash, Scope: login.ScopeAct, Ends: platformStart.Add(10 * time.Hour), User: login.User{ID: thole.LocalUser}, Client: "browser", Created: platformStart, Seen: platformStart, Expires: platformStart.Add(time.Hour)}
}

func device(code string) login.Device {
	return login.Device{Hash: code, Token: "token of " + code, Name: "thole", Scope: login.ScopeAct, Created: platformStart, Expires: platformStart.Add(time.Minute)}
}

func (p *platform) redeem(as string) error {
	got, found, err := p.LoginSessions().Redeem(p.ctx, "code", session(as))
	if err == nil && (!found || got.User.ID != thole.LocalUser) {
		err = fmt.Errorf("redeem: found %v, %+v", found, got)
	}
	return err
}

func (p *platform) begin(key, result string, fresh bool) error {
	got, isFresh, err := p.Idempotency().Begin(p.ctx, thole.LocalUser, "scope", key, "sum")
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

const sharedThread thole.ThreadID = "0192b7a0-0000-7000-8000-000000000001"

// addThread makes the thread that a share link is of.
func (p *platform) addThread() error {
	return p.Update(p.ctx, "test.thread", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`insert into threads (id, app_id, project_id, user_id, name, preview, provider, dir, settings, native_id, origin, source, client, ephemeral, archived,
			forked_from, parent_id, created_at, updated_at, seq, floor, turns, open_turn, approvals, inputs, last_outcome, paused, step_seq, usage)
			select $1, p.app_id, p.id, $2, '', '', '', '', '{}', '', '', '', '', false, false, '', '', 1, 1, 1, 0, 0, '', 0, 0, '', false, 0, '{}' from projects p limit 1`, sharedThread, thole.LocalUser)
		return err
	})
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
		{Name: "add_share", Set: p.addThread, Do: func() error {
			return s.AddShare(p.ctx, login.Share{Hash: "share", ID: "s1", Thread: sharedThread, User: thole.LocalUser, Created: platformStart, Expires: platformStart.Add(time.Hour)}, 1)
		}},
		{Name: "see_share", Do: func() error { return s.SeeShare(p.ctx, "share", platformStart.Add(time.Minute)) }},
		{Name: "remove_share", Do: func() error { return one(s.EndShare(p.ctx, thole.LocalUser, "s1")) }},
		{Name: "spend", Do: func() error {
			fresh, err := s.Spend(p.ctx, "flow", platformStart.Add(time.Minute))
			return did(fresh, err)
		}},
		{Name: "end issued", Set: func() error {
			issued := session("issued")
			issued.Issuer, issued.SID = "https://id.example.org", "sid"
			return s.AddSession(p.ctx, issued)
		}, Do: func() error {
			fresh, ended, err := s.EndIssued(p.ctx, "logout", login.Logout{Issuer: "https://id.example.org", SID: "sid", Expires: platformStart.Add(time.Hour)})
			return errors.Join(did(fresh, err), one(ended, err))
		}},
		{Name: "add_device", Do: func() error { return s.AddDevice(p.ctx, device("one"), 9, 9) }},
		{Name: "refuse_device", Do: func() error { return s.RefuseDevice(p.ctx, "one") }},
		{Name: "confirm_device", Set: func() error { return s.AddDevice(p.ctx, device("two"), 9, 9) }, Do: func() error {
			t := token
			t.Hash, t.ID = "token of two", "t3"
			found, err := s.ConfirmDevice(p.ctx, "two", t, 9)
			return did(found, err)
		}},
		{Name: "audit", Do: func() error {
			_, err := p.Audit().Append(p.ctx, audit.Entry{Action: "test.act", At: platformStart})
			return err
		}},
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
		{Name: "end_revived", Do: func() error {
			_, err := s.EndRevived(p.ctx, "an older store", platformStart)
			return err
		}},
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
		// The chain is whole after every kill, and has a link of each act that it is about.
		r, err := audit.Verify(p.ctx, p.Audit(), nil, "")
		links := 0
		for _, act := range done {
			if slices.Contains([]string{"add_login", "use code", "redeem", "add", "remove", "add_token", "remove_token", "add_share", "remove_share", "audit", "sweep"}, act) {
				links++
			}
		}
		if ok(err); len(r.Faults) > 0 || r.Links < int64(links) {
			t.Errorf("the audit chain after %v: %+v, want at least %d links", done, r, links)
		}
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
		if found != (has("redeem") && !has("end_revived")) {
			t.Errorf("after %v: session found %v", done, found)
		}
		if found && has("renew") && !got.Expires.Equal(platformStart.Add(9*time.Hour)) {
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
		_, found, err = s.Token(p.ctx, "token of two", platformStart)
		ok(err)
		if found != (has("confirm_device") && !has("end_revived")) {
			t.Errorf("after %v: the token of a program found %v", done, found)
		}
		if found {
			ok(one(s.EndToken(p.ctx, thole.LocalUser, "t3")))
		}
		if has("remove_token") { // its place under the limit is free again
			ok(s.AddToken(p.ctx, login.Token{Hash: "new", ID: "t2", Scope: login.ScopeAct, User: login.User{ID: thole.LocalUser}, Name: "ci", Created: platformStart}, 1, ""))
		}
		share, found, err := s.Share(p.ctx, "share", platformStart)
		ok(err)
		if want := has("add_share") && !has("remove_share"); found != want || want && share.Seen.After(platformStart) != has("see_share") {
			t.Errorf("after %v: share found %v, %+v", done, found, share)
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

// checkKeys: a key that was claimed and not finished can be used again, and a first
// result stands.
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
	if _, _, err := p.Idempotency().Begin(p.ctx, thole.LocalUser, "scope", "key", "other"); has("begin") != errors.Is(err, store.ErrKeyReused) {
		t.Errorf("another request with the key: %v", err)
	} else if !has("begin") {
		if err := p.Idempotency().Forget(p.ctx, thole.LocalUser, "scope", "key"); err != nil {
			t.Error(err)
		}
	}
	repeat("key", result, !has("finish"))
	repeat("refused", "", true)
	repeat("refused", "", false) // it runs
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
