package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/sqldb"
)

const selectGrant = `select id, subject_kind, subject_id, role, scope_kind, scope_id, source, created_by, created_at, expires_at from grants`

func scanGrant(rows *sql.Rows) (g identity.Grant, err error) {
	var created, expires int64
	err = rows.Scan(&g.ID, &g.Holder, &g.To, &g.Role, &g.Kind, &g.On, &g.Source, &g.By, &created, &expires)
	g.Created, g.Expires = thole.FromMillis(created), thole.FromMillis(expires)
	return g, err
}

// Facts implements identity.Store.
func (s *Identities) Facts(ctx context.Context, id thole.UserID, now time.Time) (f identity.Facts, found bool, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		f = identity.Facts{}
		if f.User, found, err = person(tx, ` where id = $1`, id); err != nil || !found {
			return err
		}
		if f.Team, err = isTeam(tx, ""); err != nil {
			return err
		}
		grants, err := sqldb.All(tx, scanGrant, selectGrant+` where (subject_kind = 'department' or subject_id = $2) and (expires_at = 0 or expires_at > $1) order by created_at, id`, instant(now), id)
		if err != nil {
			return err
		}
		t, err := readTree(tx)
		if err != nil {
			return err
		}
		in := t.above(id)
		f.Below = map[identity.DepartmentID][]thole.UserID{}
		for _, g := range grants {
			if g.Holder == identity.ToUser && g.To != string(id) || g.Holder == identity.ToDepartment && !slices.Contains(in, identity.DepartmentID(g.To)) {
				continue
			}
			f.Grants = append(f.Grants, g)
			if g.Kind == authz.OnDepartment {
				f.Below[identity.DepartmentID(g.On)] = t.below(identity.DepartmentID(g.On))
			}
		}
		return nil
	})
	return f, found, err
}

// Grants implements identity.Store.
func (s *Identities) Grants(ctx context.Context, holder identity.Holder, to string) (all []identity.Grant, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, scanGrant, selectGrant+` where $2 = '' or subject_kind = $1 and subject_id = $2 order by created_at, id`, string(holder), to)
		return err
	})
	return all, err
}

// Place implements identity.Store. An id comes before a name.
func (s *Identities) Place(ctx context.Context, kind authz.Kind, name string) (p identity.Place, found bool, err error) {
	if kind == authz.OnPlatform {
		return p, name == "", nil
	}
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		query := map[authz.Kind]string{
			authz.OnApp:        `select id, id from apps where id = $1 or name = $1 order by case when id = $1 then 0 else 1 end`,
			authz.OnProject:    `select id, app_id from projects where id = $1 or name = $1 order by case when id = $1 then 0 else 1 end, app_id`,
			authz.OnUser:       `select id, '' from users where (id = $1 or login = $1) and kind <> 'system'`,
			authz.OnDepartment: `select id, '' from departments where id = $1 or name = $1 order by case when id = $1 then 0 else 1 end, id`,
		}[kind]
		if query == "" {
			return thole.Errorf(thole.CodeInvalid, "nothing is granted on %q", kind)
		}
		type row struct{ id, app string }
		all, err := sqldb.All(tx, func(rows *sql.Rows) (r row, err error) { return r, rows.Scan(&r.id, &r.app) }, query, name)
		if err != nil || len(all) == 0 {
			return err
		}
		if len(all) > 1 && all[0].id != name {
			return thole.Errorf(thole.CodeInvalid, "several a %s is called %s", kind, name).WithHint("name it by its id")
		}
		found, p.ID = true, all[0].id
		switch kind {
		case authz.OnApp:
			p.Resource.App = thole.AppID(p.ID)
		case authz.OnProject:
			p.Resource.App, p.Resource.Project = thole.AppID(all[0].app), thole.ProjectID(p.ID)
		case authz.OnUser:
			p.Users = []thole.UserID{thole.UserID(p.ID)}
		case authz.OnDepartment:
			t, err := readTree(tx)
			if err != nil {
				return err
			}
			p.Users = t.below(identity.DepartmentID(p.ID))
		case authz.OnPlatform:
		}
		return nil
	})
	return p, found, err
}

func insertGrant(tx *sqldb.Tx, g identity.Grant) error {
	fresh, err := tx.ExecOne(`insert into grants (id, subject_kind, subject_id, role, scope_kind, scope_id, source, created_by, created_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict do nothing`,
		g.ID, string(g.Holder), g.To, string(g.Role), string(g.Kind), g.On, g.Source, g.By, instant(g.Created), instant(g.Expires))
	if err == nil && !fresh {
		err = thole.Errorf(thole.CodeConflict, "it is granted already").WithHint("revoke it first to grant it for another time")
	}
	return err
}

func grantEntry(action string, g identity.Grant) audit.Entry {
	facts := audit.Facts(map[string]any{"to": string(g.Holder) + " " + g.To, "role": g.Role, "on": string(g.Kind) + " " + g.On, "source": g.Source, "expires_at": g.Expires})
	e := audit.Entry{Action: action, Kind: "grant", ID: g.ID}
	if g.Holder == identity.ToUser {
		e.Owner = thole.UserID(g.To)
	}
	if action == "grant.revoke" {
		e.Before = facts
	} else {
		e.After = facts
	}
	return e
}

// AddGrant implements identity.Store.
func (s *Identities) AddGrant(ctx context.Context, g identity.Grant) error {
	return s.change(ctx, "identity.grant", func(tx *sqldb.Tx) error {
		table := map[identity.Holder]string{identity.ToUser: "users", identity.ToDepartment: "departments"}[g.Holder]
		there, err := sqldb.All(tx, scanID[string], `select id from `+table+` where id = $1`+tx.ForUpdate(), g.To)
		if err == nil && len(there) == 0 {
			err = thole.Errorf(thole.CodeNotFound, "no %s %s", g.Holder, g.To)
		}
		if err != nil {
			return err
		}
		// One that expired makes room for the same again.
		if _, err := tx.Exec(`delete from grants where subject_kind = $1 and subject_id = $2 and role = $3 and scope_kind = $4 and scope_id = $5 and source = $6 and expires_at > 0 and expires_at <= $7`,
			string(g.Holder), g.To, string(g.Role), string(g.Kind), g.On, g.Source, instant(g.Created)); err != nil {
			return err
		}
		if err := insertGrant(tx, g); err != nil {
			return err
		}
		_, err = link(tx, grantEntry("grant.add", g))
		return err
	})
}

// RemoveGrantIf implements identity.Store.
func (s *Identities) RemoveGrantIf(ctx context.Context, g identity.Grant) (removed bool, err error) {
	err = s.change(ctx, "identity.revoke", func(tx *sqldb.Tx) error {
		if _, err := isTeam(tx, tx.ForUpdate()); err != nil {
			return err
		}
		if removed, err = tx.ExecOne(`delete from grants where id = $1`, g.ID); err != nil || !removed {
			return err
		}
		if g.Role == authz.PlatformAdmin {
			if err := hasAdmin(tx, tx.Now()); err != nil {
				return err
			}
		}
		_, err = link(tx, grantEntry("grant.revoke", g))
		return err
	})
	return removed && err == nil, err
}

// SetGroups implements identity.Store. What stays keeps its row.
func (s *Identities) SetGroups(ctx context.Context, user thole.UserID, source string, want []identity.Grant, in []identity.DepartmentID) error {
	return s.change(ctx, "identity.set_groups", func(tx *sqldb.Tx) error {
		if _, err := sqldb.All(tx, scanID[string], `select id from users where id = $1`+tx.ForUpdate(), user); err != nil {
			return err
		}
		have, err := sqldb.All(tx, scanGrant, selectGrant+` where subject_kind = 'user' and subject_id = $1 and source = $2`, user, source)
		if err != nil {
			return err
		}
		same := func(a identity.Grant) func(identity.Grant) bool {
			return func(b identity.Grant) bool { return a.Role == b.Role && a.Kind == b.Kind && a.On == b.On }
		}
		for _, g := range have {
			if slices.ContainsFunc(want, same(g)) {
				continue
			}
			if _, err := tx.Exec(`delete from grants where id = $1`, g.ID); err != nil {
				return err
			}
			if _, err := link(tx, grantEntry("grant.revoke", g)); err != nil {
				return err
			}
		}
		for i, g := range want {
			if slices.ContainsFunc(have, same(g)) || slices.ContainsFunc(want[:i], same(g)) {
				continue
			}
			if err := insertGrant(tx, g); err != nil {
				return err
			}
			if _, err := link(tx, grantEntry("grant.add", g)); err != nil {
				return err
			}
		}
		return setDepartments(tx, user, source, in)
	})
}
