package vault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/internal/vault"
	"github.com/tholehq/thole/internal/vault/keyfile"
)

var ctx = context.Background()

const other thole.UserID = "00000000-0000-7000-8000-0000000000aa"

var (
	mine  = vault.Owner{Kind: vault.OfUser, ID: string(thole.LocalUser)}
	yours = vault.Owner{Kind: vault.OfUser, ID: string(other)}
	ofAll = vault.Owner{Kind: vault.OfPlatform}
	me    = thole.LocalActor
	you   = thole.Actor{User: other, Via: "cookie"}
	turn  = vault.Use{Thread: "thread", Turn: "turn", Executor: "executor", Purpose: "gateway"}
)

// rig is a vault on a real store with a real key file.
type rig struct {
	*vault.Vault
	t   testing.TB
	db  *store.DB
	key keyfile.File
	now time.Time
}

func newRig(t testing.TB, db *store.DB) *rig {
	g := &rig{t: t, db: db, key: keyfile.File{Path: filepath.Join(t.TempDir(), "keys", "vault.key")}, now: time.Now()}
	g.Vault = vault.New(vault.Config{Store: db.Vault(), Keys: g.key, Now: func() time.Time { return g.now }})
	return g
}

func (g *rig) create(a thole.Actor, o vault.Owner, name string, value string) vault.Item {
	g.t.Helper()
	i, err := g.Create(ctx, a, vault.NewItem{Owner: o, Name: name, Kind: vault.ProviderAuth, Provider: "codex", Value: []byte(value)})
	if err != nil {
		g.t.Fatal(err)
	}
	return i
}

func (g *rig) opens(id vault.ItemID, want string) {
	g.t.Helper()
	s, err := g.Open(ctx, id, turn)
	if err != nil || string(s.Bytes()) != want {
		g.t.Fatalf("opened %d bytes, %v; want %q", len(s.Bytes()), err, want)
	}
}

func (g *rig) refuses(code thole.Code, err error) {
	g.t.Helper()
	if thole.CodeOf(err) != code {
		g.t.Fatalf("%v has code %s, want %s", err, thole.CodeOf(err), code)
	}
}

func both(t *testing.T, test func(t *testing.T, g *rig)) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) { test(t, newRig(t, open(t))) })
}

func TestLife(t *testing.T) {
	both(t, func(t *testing.T, g *rig) {
		i := g.create(me, mine, "codex", "one")
		if i.State != vault.Active || i.Version != 1 || len(i.Fingerprint) != 12 {
			t.Fatalf("%+v", i)
		}
		g.opens(i.ID, "one")
		_, err := g.Create(ctx, me, vault.NewItem{Owner: mine, Name: "codex", Kind: vault.Env, Value: []byte("x")})
		g.refuses(thole.CodeConflict, err)

		// A renewal compares and sets.
		renewed, err := g.Replace(ctx, i.ID, i.ETag, []byte("two"))
		if err != nil || renewed.Version != 2 || renewed.ETag == i.ETag || renewed.Fingerprint == i.Fingerprint {
			t.Fatalf("%+v, %v", renewed, err)
		}
		_, err = g.Replace(ctx, i.ID, i.ETag, []byte("late"))
		g.refuses(thole.CodeConflict, err)
		_, err = g.MarkNeedsLogin(ctx, i.ID, i.ETag)
		g.refuses(thole.CodeConflict, err)
		// A use of what was replaced meanwhile is not recorded; Open reads again.
		g.refuses(thole.CodeConflict, g.db.Vault().UseItemIf(ctx, i.ID, i.ETag, vault.Use{Purpose: "late"}))
		g.opens(i.ID, "two")

		// A refused login is not opened until a person sets another.
		marked, err := g.MarkNeedsLogin(ctx, i.ID, renewed.ETag)
		if err != nil || marked.State != vault.NeedsLogin {
			t.Fatalf("%+v, %v", marked, err)
		}
		_, err = g.Open(ctx, i.ID, turn)
		g.refuses(thole.CodeHeld, err)
		if !strings.Contains(thole.HintOf(err), "thole provider login codex") {
			t.Error(thole.HintOf(err))
		}
		if _, err := g.Put(ctx, me, i.ID, []byte("one"), nil); err != nil {
			t.Fatal(err)
		}
		g.opens(i.ID, "one")
		now, err := g.Item(ctx, me, i.ID)
		if err != nil || now.Fingerprint != i.Fingerprint || now.State != vault.Active || now.Used.IsZero() {
			t.Fatalf("%+v, %v: the same value has another fingerprint", now, err)
		}

		// Revoked is the end of the value and of nothing else.
		stale := errors.New("stale")
		if _, err := g.Revoke(ctx, me, i.ID, func(vault.Item) error { return stale }); !errors.Is(err, stale) {
			t.Fatal(err)
		}
		if _, err := g.Revoke(ctx, me, i.ID, nil); err != nil {
			t.Fatal(err)
		}
		_, err = g.Open(ctx, i.ID, turn)
		g.refuses(thole.CodeGone, err)
		_, err = g.Put(ctx, me, i.ID, []byte("three"), nil)
		g.refuses(thole.CodeConflict, err)
		_, err = g.Revoke(ctx, me, i.ID, nil)
		g.refuses(thole.CodeConflict, err)
		g.create(me, mine, "codex", "another") // the name is free

		changes, err := g.Changes(ctx, me, i.ID)
		var trail []string
		for _, c := range changes {
			trail = append(trail, fmt.Sprintf("%s:%s>%s by %s", c.Event, c.From, c.To, c.Actor.Who()))
		}
		who := string(thole.LocalUser)
		if got, want := strings.Join(trail, " "), "item.revoke:active>revoked by "+who+" item.replace:needs_login>active by "+who+
			" item.needs_login:active>needs_login by system item.replace:active>active by system item.create:>active by "+who; err != nil || got != want {
			t.Errorf("trail %s, %v\nwant  %s", got, err, want)
		}
		uses, err := g.Uses(ctx, me, i.ID)
		if err != nil || len(uses) != 1 || uses[0].Turn != "turn" || uses[0].Purpose != "gateway" {
			t.Errorf("%+v, %v", uses, err)
		}
		list, err := g.Items(ctx, me, false)
		all, err2 := g.Items(ctx, me, true)
		if len(list) != 1 || len(all) != 2 || err != nil || err2 != nil {
			t.Errorf("%d live, %d in all, %v %v", len(list), len(all), err, err2)
		}
	})
}

// Which secret serves whom, and that nobody manages another's.
func TestOwners(t *testing.T) {
	both(t, func(t *testing.T, g *rig) {
		project := vault.Owner{Kind: vault.OfProject, ID: string(thole.DefaultProject)}
		shared := g.create(me, ofAll, "shared", "platform's")
		ofProject := g.create(me, project, "team", "project's")
		theirs := g.create(you, yours, "own", "yours")

		find := func(user thole.UserID, want vault.ItemID) {
			t.Helper()
			o := thole.DefaultOwner
			o.User = user
			if i, err := g.Find(ctx, o, vault.ProviderAuth, "codex"); err != nil || i.ID != want {
				t.Errorf("found %s of %s, %v", i.Name, i.Owner.Kind, err)
			}
		}
		find(other, theirs.ID)
		find(thole.LocalUser, ofProject.ID)
		if _, err := g.Revoke(ctx, me, ofProject.ID, nil); err != nil {
			t.Fatal(err)
		}
		find(thole.LocalUser, shared.ID)
		// Their own login comes first, also when it is refused.
		if _, err := g.MarkNeedsLogin(ctx, theirs.ID, theirs.ETag); err != nil {
			t.Fatal(err)
		}
		find(other, theirs.ID)
		again := g.create(you, yours, "second", "again")
		find(other, again.ID)
		_, err := g.Find(ctx, thole.DefaultOwner, vault.ProviderAuth, "claude")
		g.refuses(thole.CodeNotFound, err)
		_, err = g.Find(ctx, thole.DefaultOwner, vault.Git, "codex")
		g.refuses(thole.CodeNotFound, err)

		for what, err := range map[string]error{
			"item":   second(g.Item(ctx, you, shared.ID)),
			"put":    second(g.Put(ctx, you, shared.ID, []byte("x"), nil)),
			"revoke": second(g.Revoke(ctx, you, shared.ID, nil)),
			"uses":   second(g.Uses(ctx, you, shared.ID)),
			"test":   second(g.Test(ctx, you, shared.ID)),
			"mine":   second(g.Item(ctx, me, theirs.ID)),
		} {
			if thole.CodeOf(err) != thole.CodeNotFound {
				t.Errorf("%s of another: %v", what, err)
			}
		}
		for _, o := range []vault.Owner{mine, ofAll, project, {Kind: vault.OfApp, ID: string(thole.DefaultApp)}} {
			g.refuses(thole.CodeForbidden, second(g.Create(ctx, you, vault.NewItem{Owner: o, Name: "n", Kind: vault.Env, Value: []byte("x")})))
		}
		g.refuses(thole.CodeForbidden, second(g.Rotate(ctx, you)))
		// Only people: an agent is nobody, and the program sets nothing by itself.
		for _, a := range []thole.Actor{thole.AgentActor, {User: thole.LocalUser, Via: "agent"}, thole.SystemActor, {}} {
			for what, err := range map[string]error{
				"create": second(g.Create(ctx, a, vault.NewItem{Owner: mine, Name: "n", Kind: vault.Env, Value: []byte("x")})),
				"list":   second(g.Items(ctx, a, false)),
				"item":   second(g.Item(ctx, a, shared.ID)),
				"named":  second(g.Named(ctx, a, mine, "x")),
				"put":    second(g.Put(ctx, a, shared.ID, []byte("x"), nil)),
				"revoke": second(g.Revoke(ctx, a, shared.ID, nil)),
				"test":   second(g.Test(ctx, a, shared.ID)),
				"rotate": second(g.Rotate(ctx, a)),
			} {
				if thole.CodeOf(err) != thole.CodeForbidden {
					t.Errorf("%s as %+v: %v", what, a, err)
				}
			}
		}
		if list, err := g.Items(ctx, you, true); err != nil || len(list) != 2 {
			t.Errorf("%d, %v", len(list), err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestBadInput(t *testing.T) {
	g := newRig(t, storetest.SQLite(t))
	for name, n := range map[string]vault.NewItem{
		"no name":     {Kind: vault.Env},
		"a path":      {Name: "../x", Kind: vault.Env},
		"no kind":     {Name: "n"},
		"no provider": {Name: "n", Kind: vault.ProviderAuth},
		"a provider":  {Name: "n", Kind: vault.ProviderAuth, Provider: "Open AI"},
		"a port":      {Name: "n", Kind: vault.ProviderAuth, Provider: "codex:1"},
		"a server":    {Name: "n", Kind: vault.Git, Provider: "git.example.com:x"},
		"the past":    {Name: "n", Kind: vault.Env, Expires: g.now.Add(-time.Hour)},
		"empty":       {Name: "n", Kind: vault.Env, Value: []byte{}},
		"too long":    {Name: "n", Kind: vault.Env, Value: make([]byte, vault.MaxValue+1)},
	} {
		if n.Owner = mine; n.Value == nil {
			n.Value = []byte("x")
		}
		if _, err := g.Create(ctx, me, n); thole.CodeOf(err) != thole.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(g.key.Path); err == nil {
		t.Error("a refused secret made a key")
	}
	for n, server := range []string{"git.example.com", "git.example.com:8443", "[::1]:3000"} {
		if _, err := g.Create(ctx, me, vault.NewItem{Owner: mine, Name: fmt.Sprint("server-", n), Kind: vault.Git, Provider: server, Value: []byte("v")}); err != nil {
			t.Errorf("%s: %v", server, err)
		}
	}
	i, err := g.Create(ctx, me, vault.NewItem{Owner: mine, Name: "n", Kind: vault.Env, Provider: "x", Value: []byte("v"), Expires: g.now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	g.opens(i.ID, "v")
	g.refuses(thole.CodeInvalid, second(g.MarkNeedsLogin(ctx, i.ID, i.ETag)))
	g.now = g.now.Add(time.Hour)
	g.refuses(thole.CodeGone, second(g.Open(ctx, i.ID, turn)))
	g.refuses(thole.CodeNotFound, second(g.Find(ctx, thole.DefaultOwner, vault.Env, "x")))
	g.refuses(thole.CodeNotFound, second(g.Open(ctx, "nothing", turn)))
}

// Without its key the vault is locked: what is there is listed and can be removed, and
// nothing is sealed with another key.
func TestLocked(t *testing.T) {
	g := newRig(t, storetest.SQLite(t))
	if err := g.Locked(ctx); err != nil {
		t.Fatal(err)
	}
	i := g.create(me, mine, "codex", "value")
	key, err := os.ReadFile(g.key.Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, lock := range map[string]func(path string) error{
		"missing":     os.Remove,
		"another key": func(path string) error { return os.WriteFile(path, make([]byte, vault.KeySize), 0o600) },
		"cut":         func(path string) error { return os.WriteFile(path, key[:31], 0o600) },
		"too long":    func(path string) error { return os.WriteFile(path, append(key, 0), 0o600) },
		"of others":   func(path string) error { return os.Chmod(path, 0o640) },
		"a directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := lock(g.key.Path); err != nil {
				t.Fatal(err)
			}
			_, create := g.Create(ctx, me, vault.NewItem{Owner: ofAll, Name: "new", Kind: vault.Env, Value: []byte("x")})
			for what, err := range map[string]error{
				"open": second(g.Open(ctx, i.ID, turn)), "create": create, "put": second(g.Put(ctx, me, i.ID, []byte("x"), nil)),
				"replace": second(g.Replace(ctx, i.ID, i.ETag, []byte("x"))), "rotate": second(g.Rotate(ctx, me)), "check": second(g.Check(ctx)), "locked": g.Locked(ctx),
			} {
				if !errors.Is(err, vault.ErrLocked) || thole.CodeOf(err) != thole.CodeUnavailable || !strings.Contains(thole.HintOf(err), "put the key file back at "+g.key.Path) {
					t.Errorf("%s: %v (%s)", what, err, thole.HintOf(err))
				}
			}
			if list, err := g.Items(ctx, me, false); err != nil || len(list) != 1 || list[0].Fingerprint != i.Fingerprint {
				t.Errorf("%+v, %v", list, err)
			}
			if err := errors.Join(os.RemoveAll(g.key.Path), os.WriteFile(g.key.Path, key, 0o600)); err != nil {
				t.Fatal(err)
			}
			g.opens(i.ID, "value")
		})
	}
	// A key that is lost for good: what it protected is removed, and a new one is made.
	if err := os.Remove(g.key.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Revoke(ctx, me, i.ID, nil); err != nil {
		t.Fatal(err)
	}
	fresh := g.create(me, mine, "codex", "new")
	g.opens(fresh.ID, "new")
	if again, _ := os.ReadFile(g.key.Path); string(again) == string(key) {
		t.Error("the key is the old one")
	}
}

// An attacker who can write to the database cannot have another's secret opened as theirs,
// nor an older value of the same. In a build without the binding the first works.
func TestRowsCannotBeMoved(t *testing.T) {
	g := newRig(t, storetest.SQLite(t))
	victim := g.create(me, mine, "victim", "the victim's")
	thief := g.create(me, mine, "thief", "the thief's")
	update := func(query string, args ...any) {
		t.Helper()
		if err := g.db.Update(ctx, "test.update", func(tx *sqldb.Tx) error { _, err := tx.Exec(query, args...); return err }); err != nil {
			t.Fatal(err)
		}
	}
	update(`update vault_items set nonce = v.nonce, ciphertext = v.ciphertext from (select * from vault_items where id = $1) v where vault_items.id = $2`, victim.ID, thief.ID)
	s, err := g.Open(ctx, thief.ID, turn)
	if unguarded.Build {
		if string(s.Bytes()) != "the victim's" {
			t.Fatalf("the attack does not work without the guard: %v", err)
		}
		return
	}
	if err == nil || s.Bytes() != nil {
		t.Fatal("a moved value opens")
	}
	faults, err := g.Check(ctx)
	if err != nil || len(faults) != 1 || faults[0].Item.ID != thief.ID {
		t.Fatalf("%+v, %v", faults, err)
	}
	update(`create table saved as select * from vault_items where id = $1`, victim.ID)
	if _, err := g.Put(ctx, me, victim.ID, []byte("the second"), nil); err != nil {
		t.Fatal(err)
	}
	update(`update vault_items set nonce = s.nonce, ciphertext = s.ciphertext from saved s where vault_items.id = s.id`)
	if _, err := g.Open(ctx, victim.ID, turn); err == nil {
		t.Fatal("a replaced value opens again")
	}
	// Nor an owner's data key as another's.
	mineToo := g.create(you, yours, "own", "yours")
	update(`update vault_keys set wrapped = (select wrapped from vault_keys where owner_id = $1) where owner_id = $2`, string(thole.LocalUser), string(other))
	if _, err := g.Open(ctx, mineToo.ID, turn); err == nil {
		t.Fatal("a moved data key opens")
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	g := newRig(t, storetest.SQLite(t))
	i := g.create(me, mine, "codex", "xylophone")
	s, err := g.Open(ctx, i.ID, turn)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "err", s, "thread", struct{ S vault.Secret }{s})
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "err", s, "thread", struct{ s vault.Secret }{s})
	encoded, _ := json.Marshal(map[string]any{"s": s, "list": []vault.Secret{s}})
	hidden := struct {
		s vault.Secret
		p *vault.Secret
	}{s, &s}
	out := log.String() + string(encoded)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		out += fmt.Sprintf(verb+verb+verb+verb, s, &s, hidden, []vault.Secret{s})
	}
	for _, form := range []string{"xylophone", "78796c6f", "120 121 108", "eHlsb3"} {
		if strings.Contains(out, form) {
			t.Errorf("it prints as %q:\n%s", form, out)
		}
	}
	if !strings.Contains(out, "[secret]") {
		t.Error(out)
	}
	b := s.Bytes()
	s.Wipe()
	if string(b) != strings.Repeat("\x00", 9) || s.Bytes() != nil {
		t.Errorf("wiped: %q", b)
	}
}
