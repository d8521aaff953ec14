package store

import (
	"context"
	"database/sql"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/sqldb"
)

func insertLink(tx *sqldb.Tx, l identity.Link) error {
	if _, err := tx.Exec(`delete from account_links where kind = 'setup' and $1 = 'setup' or user_id = $2`, string(l.Purpose), l.User); err != nil {
		return err
	}
	_, err := tx.Exec(`insert into account_links (link_hash, kind, user_id, created_by, created_at, expires_at) values ($1, $2, $3, $4, $5, $6)`,
		l.Hash, string(l.Purpose), sql.NullString{String: string(l.User), Valid: l.User != ""}, l.By, instant(l.Created), instant(l.Expires))
	return err
}

// AddLink implements identity.Store.
func (s *Identities) AddLink(ctx context.Context, l identity.Link) error {
	return s.db.Update(ctx, "identity.add_link", func(tx *sqldb.Tx) error {
		if l.Purpose == identity.Setup {
			if team, err := isTeam(tx, ""); err != nil {
				return err
			} else if team {
				return errSetUp()
			}
		}
		if err := insertLink(tx, l); err != nil {
			return err
		}
		_, err := link(tx, audit.Entry{Action: "user.link", Kind: "user", ID: string(l.User), Owner: l.User, After: audit.Facts(map[string]any{"for": l.Purpose, "expires_at": l.Expires})})
		return err
	})
}

func errSetUp() error {
	return thole.Errorf(thole.CodeConflict, "this server was set up already")
}

// Link implements identity.Store.
func (s *Identities) Link(ctx context.Context, hash string, now time.Time) (l identity.Link, u identity.User, found bool, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		l, u, found, err = accountLink(tx, hash, now, "")
		return err
	})
	return l, u, found, err
}

// accountLink finds a link that works: a set-up before it was done, an invitation of an
// invited user, a reset of an active one.
func accountLink(tx *sqldb.Tx, hash string, now time.Time, lock string) (l identity.Link, u identity.User, found bool, err error) {
	all, err := sqldb.All(tx, func(rows *sql.Rows) (l identity.Link, err error) {
		var created, expires int64
		err = rows.Scan(&l.Hash, &l.Purpose, &l.User, &l.By, &created, &expires)
		l.Created, l.Expires = thole.FromMillis(created), thole.FromMillis(expires)
		return l, err
	}, `select link_hash, kind, coalesce(user_id, ''), created_by, created_at, expires_at from account_links where link_hash = $1 and expires_at > $2`+lock, hash, instant(now))
	if err != nil || len(all) == 0 {
		return l, u, false, err
	}
	l = all[0]
	if l.Purpose == identity.Setup {
		team, err := isTeam(tx, "")
		return l, u, !team, err
	}
	u, found, err = person(tx, ` where id = $1`, l.User)
	want := map[identity.Purpose]identity.State{identity.Invite: identity.Invited, identity.Reset: identity.Active}[l.Purpose]
	return l, u, found && u.State == want, err
}

// UseLink implements identity.Store.
func (s *Identities) UseLink(ctx context.Context, hash string, a identity.Account, now time.Time) (u identity.User, ended []string, found bool, err error) {
	err = s.change(ctx, "identity.use_link", func(tx *sqldb.Tx) error {
		ended = nil
		var l identity.Link
		if l, u, found, err = accountLink(tx, hash, now, tx.ForUpdate()); err != nil || !found {
			return err
		}
		if found, err = tx.ExecOne(`delete from account_links where link_hash = $1`, hash); err != nil || !found {
			return err
		}
		before := u.State
		switch l.Purpose {
		case identity.Setup:
			u = a.User
			err = setUp(tx, a, now)
		case identity.Invite:
			u.State = identity.Active
			if a.User.Name != "" {
				u.Name = a.User.Name
			}
			err = tx.Must("the user is invited", `update users set state = 'active', invited = false, name = $2 where id = $1 and invited`, u.ID, u.Name)
		case identity.Reset:
			ended, err = endAccount(tx, u.ID, "")
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`delete from passwords where user_id = $1`, u.ID); err != nil {
			return err
		}
		if _, err := tx.Exec(`insert into passwords (user_id, argon2id, changed_at) values ($1, $2, $3)`, u.ID, a.Password, instant(now)); err != nil {
			return err
		}
		e := userEntry("user."+map[identity.Purpose]string{identity.Setup: "setup", identity.Invite: "join", identity.Reset: "reset"}[l.Purpose], u)
		e.At, e.Before = now, stateFact(string(before))
		from := audit.SourceOf(tx.Context())
		from.Actor = thole.Actor{User: u.ID, Via: "link"}
		_, err = link(tx, e.From(from))
		return err
	})
	return u, ended, found && err == nil, err
}

// setUp makes the first administrator. The fact's row is one: of two set-ups one is refused,
// whichever links they came with.
func setUp(tx *sqldb.Tx, a identity.Account, now time.Time) error {
	fresh, err := tx.ExecOne(`insert into store_facts (name, value) values ($1, $2) on conflict do nothing`, teamFact, string(a.User.ID))
	if err == nil && !fresh {
		err = errSetUp()
	}
	if err != nil {
		return err
	}
	if err := insertPerson(tx, a.User); err != nil {
		return err
	}
	if _, err := tx.Exec(`delete from account_links where kind = 'setup'`); err != nil {
		return err
	}
	return insertGrant(tx, identity.Grant{ID: a.Grant, Holder: identity.ToUser, To: string(a.User.ID), Role: authz.PlatformAdmin, Kind: authz.OnPlatform, By: thole.SystemUser, Created: now})
}
