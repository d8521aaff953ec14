package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/audit/anchor"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/unguarded"
)

var start = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// chain is a store with five links and the head that was signed after the fourth.
type chain struct {
	*store.DB
	log    *audit.Log
	anchor anchor.Dir
}

func newChain(t *testing.T, db *store.DB) *chain {
	t.Helper()
	c := &chain{DB: db, anchor: anchor.Dir(filepath.Join(t.TempDir(), "audit"))}
	c.log = audit.New(c.Audit(), c.anchor, func() time.Time { return start }, nil)
	c.exec(t, `delete from audit_events`)
	c.exec(t, `delete from audit_head`)
	c.exec(t, `insert into audit_head (one, seq, hash) values (1, 0, '')`)
	if h, err := c.anchor.Sign(audit.Head{}, start); err != nil || c.anchor.Keep(h) != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		ctx := audit.With(t.Context(), audit.Source{Actor: thole.Actor{User: thole.LocalUser, Via: "token"}, Login: "l1", Address: "192.0.2.1"})
		if err := c.log.Record(ctx, audit.Entry{Action: "test.act", Kind: "thing", ID: "a b\n5:c", Before: "ä"}); err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			h, err := c.log.Head(ctx)
			if err == nil {
				err = c.anchor.Keep(h)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

func (c *chain) exec(t *testing.T, query string) {
	t.Helper()
	if err := c.Update(t.Context(), "test.tamper", func(tx *sqldb.Tx) error { _, err := tx.Exec(query); return err }); err != nil {
		t.Fatal(err)
	}
}

func (c *chain) faults(t *testing.T) string {
	t.Helper()
	r, err := c.log.Verify(t.Context())
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, f := range r.Faults {
		out = append(out, f.What)
	}
	return strings.Join(out, "; ")
}

// rewrite makes a chain of one's own from link n on: what a writer of the store who
// knows the sums would do.
func (c *chain) rewrite(t *testing.T, n int64) {
	t.Helper()
	links, err := c.Audit().Links(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	head := audit.Head{}
	if err := c.Update(t.Context(), "test.tamper", func(tx *sqldb.Tx) error {
		for _, l := range links {
			if l.Seq == n {
				l.Reason = "nothing happened"
			}
			l = l.Entry.LinkTo(head)
			head = audit.Head{Seq: l.Seq, Hash: l.Hash}
			if _, err := tx.Exec(`update audit_events set reason = $2, prev = $3, hash = $4 where seq = $1`, l.Seq, l.Reason, l.Prev, l.Hash); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`update audit_head set hash = $1`, head.Hash)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// TestWhatWasDoneToAChainIsFound: each way to change the past, on both engines.
func TestWhatWasDoneToAChainIsFound(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		for _, c := range []struct {
			name, want string
			do         func(t *testing.T, c *chain)
		}{
			{"nothing", "", func(*testing.T, *chain) {}},
			{"a changed actor", "it was changed", func(t *testing.T, c *chain) { c.exec(t, `update audit_events set actor = 'agent' where seq = 2`) }},
			{"a changed outcome", "it was changed", func(t *testing.T, c *chain) { c.exec(t, `update audit_events set outcome = 'denied' where seq = 5`) }},
			{"bytes moved between fields", "it was changed", func(t *testing.T, c *chain) {
				c.exec(t, `update audit_events set resource_kind = 'thinga', resource_id = ' b' where seq = 2`)
			}},
			{"a removed link", "links 3 to 3 are missing", func(t *testing.T, c *chain) { c.exec(t, `delete from audit_events where seq = 3`) }},
			{"a removed beginning", "links 1 to 2 are missing", func(t *testing.T, c *chain) { c.exec(t, `delete from audit_events where seq <= 2`) }},
			{"a link with another sum", "does not follow", func(t *testing.T, c *chain) { c.exec(t, `update audit_events set prev = 'x' where seq = 3`) }},
			{"the end cut off", "links were cut off", func(t *testing.T, c *chain) { c.exec(t, `delete from audit_events where seq = 5`) }},
			{"a replayed head", "the head is an older one", func(t *testing.T, c *chain) {
				c.exec(t, `update audit_head set seq = 3, hash = (select hash from audit_events where seq = 3)`)
			}},
			{"the end cut off with its head", "says 4: links were cut off", func(t *testing.T, c *chain) {
				c.exec(t, `update audit_head set seq = 3, hash = (select hash from audit_events where seq = 3)`)
				c.exec(t, `delete from audit_events where seq > 3`)
			}},
			{"everything cut off", "says 4: links were cut off", func(t *testing.T, c *chain) {
				c.exec(t, `delete from audit_events`)
				c.exec(t, `update audit_head set seq = 0, hash = ''`)
			}},
			{"a chain made again", "not the link that was the head", func(t *testing.T, c *chain) { c.rewrite(t, 2) }},
			{"no head", "has no head", func(t *testing.T, c *chain) { c.exec(t, `delete from audit_head`) }},
			{"a head that nobody signed", "false signature", func(t *testing.T, c *chain) {
				h, _, err := c.anchor.Last()
				if h.Seq = 5; err == nil {
					err = c.anchor.Keep(h)
				}
				if err != nil {
					t.Fatal(err)
				}
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				chain := newChain(t, db)
				c.do(t, chain)
				if got := chain.faults(t); c.want == "" && got != "" || !strings.Contains(got, c.want) {
					t.Fatalf("found %q, want %q", got, c.want)
				}
			})
		}
		t.Run("without a signed head a chain made again is whole", func(t *testing.T) { // so the head is what finds it
			c := newChain(t, db)
			if err := os.Remove(filepath.Join(string(c.anchor), "head.json")); err != nil {
				t.Fatal(err)
			}
			c.rewrite(t, 2)
			if got := c.faults(t); got != "" {
				t.Fatal(got)
			}
		})
		t.Run("writers at once", func(t *testing.T) {
			c := newChain(t, db)
			errs := make(chan error)
			for range 8 {
				go func() {
					var err error
					for range 5 {
						if e := c.log.Record(context.Background(), audit.Entry{Action: "test.race"}); e != nil {
							err = e
						}
					}
					errs <- err
				}()
			}
			for range 8 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			if r, err := c.log.Verify(t.Context()); err != nil || len(r.Faults) > 0 || r.Links != 45 || r.Anchored != 4 {
				t.Fatalf("%+v, %v", r, err)
			}
		})
	})
}

// TestABrokenChainIsNotSigned: whatever is done to the chain while its server runs, no head of it
// is signed any more, so that the one that was signed before still finds it.
func TestABrokenChainIsNotSigned(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		db := open(t)
		for name, do := range map[string]func(c *chain){
			"a changed link":     func(c *chain) { c.exec(t, `update audit_events set actor = 'agent' where seq = 6`) },
			"a link left out":    func(c *chain) { c.exec(t, `delete from audit_events where seq = 6`) },
			"a chain made again": func(c *chain) { c.rewrite(t, 2) },
			"the end made again": func(c *chain) { c.rewrite(t, 5) },
			"an older head": func(c *chain) {
				c.exec(t, `update audit_head set seq = 3, hash = (select hash from audit_events where seq = 3)`)
			},
			"a head of its own": func(c *chain) { c.exec(t, `update audit_head set hash = 'x'`) },
			"the end cut off": func(c *chain) {
				c.exec(t, `update audit_head set seq = 3, hash = (select hash from audit_events where seq = 3)`)
				c.exec(t, `delete from audit_events where seq > 3`)
			},
			"another end": func(c *chain) {
				c.exec(t, `update audit_head set seq = 3, hash = (select hash from audit_events where seq = 3)`)
				c.exec(t, `delete from audit_events where seq > 3`)
				for range 6 {
					if err := c.log.Record(t.Context(), audit.Entry{Action: "test.other"}); err != nil {
						t.Fatal(err)
					}
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				c := newChain(t, db)
				if h, err := c.log.Head(t.Context()); err != nil || h.Seq != 5 || c.anchor.Keep(h) != nil {
					t.Fatalf("a whole chain: %+v, %v", h, err)
				}
				for range 2 {
					if err := c.log.Record(t.Context(), audit.Entry{Action: "test.more"}); err != nil {
						t.Fatal(err)
					}
				}
				do(c)
				for range 2 { // nor when it is asked again, nor by the next start
					if h, err := c.log.Head(t.Context()); (thole.CodeOf(err) == thole.CodeConflict) == unguarded.Build {
						t.Fatalf("signed: %+v, %v", h, err)
					}
					ctx, cancel := context.WithCancel(t.Context())
					cancel()
					c.log.Run(ctx)
					if unguarded.Build {
						break
					}
					c.log = audit.New(c.Audit(), c.anchor, func() time.Time { return start }, nil)
				}
				h, _, err := c.anchor.Last()
				if err != nil || (h.Seq == 5) == unguarded.Build && !strings.Contains(name, "end") {
					t.Fatalf("the head of link %d was kept: %v", h.Seq, err)
				}
				if got := c.faults(t); got == "" && !unguarded.Build {
					t.Fatal("and nothing is found")
				}
			})
		}
	})
}

// TestRunKeepsTheHead: the kept head follows the chain, a missing one is recorded, and one
// that the chain does not fit stays.
func TestRunKeepsTheHead(t *testing.T) {
	c := newChain(t, storetest.SQLite(t))
	run := func() { // as each start does
		c.log = audit.New(c.Audit(), c.anchor, func() time.Time { return start }, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.log.Run(ctx) }()
		cancel()
		<-done
	}
	kept := func() int64 {
		h, _, err := c.anchor.Last()
		if err != nil {
			t.Fatal(err)
		}
		return h.Seq
	}
	if run(); kept() != 5 {
		t.Fatalf("the head of link %d was kept", kept())
	}
	if _, err := c.anchor.SetAside(start); err != nil {
		t.Fatal(err)
	}
	if run(); kept() != 6 {
		t.Fatalf("the head of link %d was kept", kept())
	}
	if all, err := c.log.Latest(t.Context(), audit.Filter{Action: "audit."}); err != nil || len(all) != 1 || all[0].Actor != "system" || all[0].Outcome != audit.Failed {
		t.Fatalf("%+v, %v", all, err)
	}
	c.exec(t, `delete from audit_events where seq = 6`)
	c.exec(t, `update audit_head set seq = 5, hash = (select hash from audit_events where seq = 5)`)
	if run(); kept() != 6 || !strings.Contains(c.faults(t), "cut off") {
		t.Fatalf("the head of link %d was kept: %s", kept(), c.faults(t))
	}
}

// TestAnExportIsJudgedByItself.
func TestAnExportIsJudgedByItself(t *testing.T) {
	c := newChain(t, storetest.SQLite(t))
	links, err := c.log.Links(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	head, err := c.log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range links {
		b, _ := json.Marshal(l)
		lines = append(lines, string(b))
	}
	b, _ := json.Marshal(audit.Closing{Head: &head})
	lines = append(lines, string(b))
	check := func(lines []string) string {
		r, err := audit.VerifyExport(bytes.NewBufferString(strings.Join(lines, "\n")+"\n"), nil, "")
		if err != nil {
			return err.Error()
		}
		var out []string
		for _, f := range r.Faults {
			out = append(out, f.What)
		}
		return strings.Join(out, "; ")
	}
	if got := check(lines); got != "" {
		t.Fatal(got)
	}
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"changed":      {append([]string{strings.Replace(lines[0], "192.0.2.1", "192.0.2.2", 1)}, lines[1:]...), "it was changed"},
		"a line less":  {append(append([]string{}, lines[:4]...), lines[5]), "links were cut off"},
		"no head":      {lines[:5], "no signed head"},
		"after it":     {append(append([]string{}, lines...), lines[0]), "after the signed head"},
		"not an entry": {[]string{"{}"}, "no link"},
	} {
		if got := check(c.lines); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestRefusalsAreBounded: a flood is a few links and a count.
func TestRefusalsAreBounded(t *testing.T) {
	db, now := storetest.SQLite(t), start
	l := audit.New(db.Audit(), anchor.Dir(t.TempDir()), func() time.Time { return now }, nil)
	for range 1000 {
		l.Refused(t.Context(), audit.Entry{Action: "http.request", Reason: "no"})
	}
	now = now.Add(time.Minute)
	l.Refused(t.Context(), audit.Entry{Action: "http.request", Reason: "no"})
	all, err := l.Latest(t.Context(), audit.Filter{Outcome: audit.Denied})
	if err != nil || len(all) != 11 || !strings.Contains(all[0].Reason, "990 more") {
		t.Fatalf("%d links, %v: %+v", len(all), err, all[0])
	}
}
