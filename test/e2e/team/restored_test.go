package team

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/test/e2e/home"
)

// A database that is put back as it was, by PostgreSQL's own means, revives no login and no token: not
// one that was revoked since, nor one that might have been. It is done once, and the chain says so.
func TestARestoredDatabaseRevivesNobody(t *testing.T) {
	const word = "correct horse battery"
	dsn := lab.Postgres(t)
	h := home.New(t)
	file := configured(t, h.Dir, dsn, nil, "", "")
	s := serve(t, h, "--config", file)
	_, code, _ := strings.Cut(s.set, "#code=")
	root := s.enter("/auth/account", map[string]any{"code": code, "login": "root", "password": word})
	token := func(name string) (secret, id string) {
		t.Helper()
		status, made := s.send(root, "/auth/tokens", map[string]any{"name": name, "scope": "read"})
		if status != 201 {
			t.Fatalf("a token: %d %v", status, made)
		}
		return made["token"].(string), made["id"].(string)
	}
	revoked, id := token("revoked later")
	kept, _ := token("kept")
	s.stop()
	s = serve(t, h) // the backup is of a store that goes on as it is
	if s.with(revoked, "/sessions") != 200 || s.status(root, "/sessions") != 200 {
		t.Fatal("the logins do not outlive a start")
	}
	s.stop()

	u := mustURL(dsn)
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	admin := func(sql string) {
		t.Helper()
		if _, err := connect(t, u.String()).Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	copied := name + "_copy"
	admin(`create database "` + copied + `" template "` + name + `"`)
	s = serve(t, h)
	if status, out := s.send(root, "/methods", map[string]any{"method": "thole/token/revoke", "params": map[string]any{"id": id}}); status != 200 || s.with(revoked, "/sessions") != 401 {
		t.Fatalf("revoke: %d %v", status, out)
	}
	s.stop()
	admin(`drop database "` + name + `"`)
	admin(`alter database "` + copied + `" rename to "` + name + `"`)

	s = serve(t, h)
	if unguarded.Build {
		if got := s.with(revoked, "/sessions"); got != 200 {
			t.Errorf("without the guard the revoked token is answered %d", got)
		}
		return
	}
	for what, got := range map[string]int{"the revoked token": s.with(revoked, "/sessions"), "another token": s.with(kept, "/sessions"), "an old login": s.status(root, "/sessions")} {
		if got != 401 {
			t.Errorf("%s on the restored database: %d", what, got)
		}
	}
	if !strings.Contains(s.errs.String(), "were ended") {
		t.Errorf("the log says nothing: %s", s.errs)
	}
	root = s.enter("/auth/login", map[string]any{"login": "root", "password": word})
	run(t, h, 9, "audit", "verify")
	fresh, _ := token("made after it")
	s.stop()
	s = serve(t, h)
	if s.with(fresh, "/sessions") != 200 || s.status(root, "/sessions") != 200 {
		t.Error("the next start ends logins again")
	}
	var links int
	if err := connect(t, dsn).QueryRow(t.Context(), `select count(*) from audit_events where action = 'login.end_all' and actor = 'system' and reason like '%older one was restored%'`).Scan(&links); err != nil || links != 1 {
		t.Errorf("%d links of it: %v", links, err)
	}
}
