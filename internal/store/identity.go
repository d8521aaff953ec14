package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/identity"
	"github.com/tholehq/thole/internal/sqldb"
)

// Identities are the rows of users, departments and grants: identity.Store.
//
// Rows are locked in one order: the fact that the server is a team's, users, the chain's head.
type Identities struct{ db *DB }

var _ identity.Store = (*Identities)(nil)

// Identities gives the side of the store that knows who there is.
func (db *DB) Identities() *Identities { return &Identities{db} }

const (
	identityTopic = "identity"
	// teamFact is there once the server was set up; its value is the first administrator.
	teamFact = "team"
)

// Watch implements identity.Store.
func (s *Identities) Watch(fn func()) (cancel func()) {
	return s.db.Subscribe(identityTopic, func(string) { fn() })
}

// change is a transaction that others hear of.
func (s *Identities) change(ctx context.Context, step string, fn func(tx *sqldb.Tx) error) error {
	return s.db.Update(ctx, step, func(tx *sqldb.Tx) error {
		tx.Notify(identityTopic, "")
		return fn(tx)
	})
}

const selectPerson = `select id, login, name, email, locale, kind, case when invited then 'invited' else state end, created_at, disabled_at from users`

func scanPerson(rows *sql.Rows) (u identity.User, err error) {
	var created, disabled int64
	err = rows.Scan(&u.ID, &u.Login, &u.Name, &u.Email, &u.Locale, &u.Kind, &u.State, &created, &disabled)
	u.Created, u.Disabled = thole.FromMillis(created), thole.FromMillis(disabled)
	return u, err
}

func person(tx *sqldb.Tx, where string, args ...any) (u identity.User, found bool, err error) {
	all, err := sqldb.All(tx, scanPerson, selectPerson+where, args...)
	if err != nil || len(all) == 0 {
		return u, false, err
	}
	return all[0], true, nil
}

func isTeam(tx *sqldb.Tx, lock string) (bool, error) {
	all, err := sqldb.All(tx, scanID[string], `select value from store_facts where name = $1`+lock, teamFact)
	return len(all) > 0, err
}

// Users implements identity.Store.
func (s *Identities) Users(ctx context.Context, after string, limit int) (all []identity.User, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, scanPerson, selectPerson+` where login > $1 order by login limit $2`, after, limit)
		return err
	})
	return all, err
}

// ByLogin implements identity.Store. It asks for the password whether or not there is a user.
func (s *Identities) ByLogin(ctx context.Context, login string) (u identity.User, password string, found bool, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		if u, found, err = person(tx, ` where login = $1`, login); err != nil {
			return err
		}
		sums, err := sqldb.All(tx, scanID[string], `select p.argon2id from passwords p join users u on u.id = p.user_id where u.login = $1`, login)
		if len(sums) > 0 {
			password = sums[0]
		}
		return err
	})
	return u, password, found, err
}

func userEntry(action string, u identity.User) audit.Entry {
	return audit.Entry{Action: action, Kind: "user", ID: string(u.ID), Owner: u.ID, After: audit.Facts(map[string]string{"login": u.Login, "kind": string(u.Kind), "state": string(u.State)})}
}

func insertPerson(tx *sqldb.Tx, u identity.User) error {
	taken, err := sqldb.All(tx, scanID[string], `select id from users where login = $1`, u.Login)
	if err == nil && len(taken) > 0 {
		err = thole.Errorf(thole.CodeConflict, "there is a user %s already", u.Login)
	}
	if err != nil {
		return err
	}
	state := u.State
	if state == identity.Invited {
		state = identity.Disabled
	}
	_, err = tx.Exec(`insert into users (id, login, name, email, locale, kind, state, invited, created_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		u.ID, u.Login, u.Name, u.Email, u.Locale, string(u.Kind), string(state), u.State == identity.Invited, instant(u.Created))
	return err
}

// AddUser implements identity.Store.
func (s *Identities) AddUser(ctx context.Context, u identity.User, l *identity.Link) error {
	return s.change(ctx, "identity.add_user", func(tx *sqldb.Tx) error {
		if err := insertPerson(tx, u); err != nil {
			return err
		}
		if l != nil {
			if err := insertLink(tx, *l); err != nil {
				return err
			}
		}
		_, err := link(tx, userEntry("user.add", u))
		return err
	})
}

// MoveIf implements identity.Store.
func (s *Identities) MoveIf(ctx context.Context, id thole.UserID, from, to identity.State, at time.Time) (ended []string, moved bool, err error) {
	err = s.change(ctx, "identity.move", func(tx *sqldb.Tx) error {
		ended = nil
		if _, err := isTeam(tx, tx.ForUpdate()); err != nil {
			return err
		}
		stored, invited, disabled := string(from), from == identity.Invited, int64(0)
		if invited {
			stored = string(identity.Disabled)
		}
		if to == identity.Disabled {
			disabled = instant(at)
		}
		moved, err = tx.ExecOne(`update users set state = $4, invited = false, disabled_at = $5 where id = $1 and state = $2 and invited = $3`, id, stored, invited, string(to), disabled)
		if err != nil || !moved {
			return err
		}
		if to != identity.Active {
			if ended, err = endAccount(tx, id, ""); err != nil {
				return err
			}
			if err := hasAdmin(tx, at); err != nil {
				return err
			}
		}
		_, err = link(tx, audit.Entry{Action: "user." + map[identity.State]string{identity.Active: "enable", identity.Disabled: "disable"}[to], Kind: "user", ID: string(id), Owner: id,
			Before: stateFact(string(from)), After: audit.Facts(map[string]any{"state": to, "ended": ended})})
		return err
	})
	return ended, moved && err == nil, err
}

// endAccount removes all that proves a user, but one login.
func endAccount(tx *sqldb.Tx, id thole.UserID, keep string) (ended []string, err error) {
	if ended, err = endTree(tx, `select id from web_sessions where user_id = $1 and id <> $2 union all select id from api_tokens where user_id = $1`, id, keep); err != nil {
		return nil, err
	}
	shares, err := sqldb.All(tx, scanID[string], `select id from share_links where user_id = $1`, id)
	if err != nil {
		return nil, err
	}
	for _, table := range []string{"share_links", "login_codes", "account_links"} {
		if _, err := tx.Exec(`delete from `+table+` where user_id = $1`, id); err != nil {
			return nil, err
		}
	}
	return append(ended, shares...), nil
}

// hasAdmin refuses to leave a team without an active administrator. The team's fact is
// locked, so that two who remove each other come one after the other.
func hasAdmin(tx *sqldb.Tx, now time.Time) error {
	team, err := isTeam(tx, "")
	if err != nil || !team {
		return err
	}
	left, err := sqldb.All(tx, scanID[string], `select u.id from grants g join users u on u.id = g.subject_id where g.subject_kind = 'user' and g.role = $1 and g.scope_kind = 'platform'
		and (g.expires_at = 0 or g.expires_at > $2) and u.state = 'active' limit 1`, string(authz.PlatformAdmin), instant(now))
	if err == nil && len(left) == 0 {
		err = thole.Errorf(thole.CodeConflict, "nobody would be left who manages the platform").WithHint("make another platform_admin first")
	}
	return err
}

// SetPassword implements identity.Store.
func (s *Identities) SetPassword(ctx context.Context, id thole.UserID, was, password, keep string, at time.Time) (ended []string, set bool, err error) {
	err = s.change(ctx, "identity.set_password", func(tx *sqldb.Tx) error {
		ended = nil
		set, err = tx.ExecOne(`update passwords set argon2id = $3, changed_at = $4 where user_id = $1 and argon2id = $2 and exists (select 1 from users where id = $1 and state = 'active')`, id, was, password, instant(at))
		if err != nil || !set {
			return err
		}
		if ended, err = endAccount(tx, id, keep); err != nil {
			return err
		}
		_, err = link(tx, audit.Entry{Action: "user.password", Kind: "user", ID: string(id), Owner: id, After: audit.Facts(map[string]any{"ended": ended})})
		return err
	})
	return ended, set && err == nil, err
}

// Bind implements identity.Store.
func (s *Identities) Bind(ctx context.Context, i identity.Identity, add *identity.User, at time.Time) (u identity.User, found bool, err error) {
	err = s.change(ctx, "identity.bind", func(tx *sqldb.Tx) error {
		u, found, err = person(tx, ` where id = (select user_id from user_identities where issuer = $1 and subject = $2)`, i.Issuer, i.Subject)
		if err != nil {
			return err
		}
		if found {
			_, err = tx.Exec(`update user_identities set last_login_at = $3, email = $4 where issuer = $1 and subject = $2`, i.Issuer, i.Subject, instant(at), plainText(i.Email))
			return err
		}
		action := "user.bind"
		if i.Verified && i.Email != "" {
			same, err := sqldb.All(tx, scanPerson, selectPerson+` where invited and lower(email) = $1`, strings.ToLower(i.Email))
			if err != nil {
				return err
			}
			if len(same) == 1 {
				u, found = same[0], true
				u.State = identity.Active
				if err := tx.Must("the user is invited", `update users set state = 'active', invited = false where id = $1 and invited`, u.ID); err != nil {
					return err
				}
				if _, err := tx.Exec(`delete from account_links where user_id = $1`, u.ID); err != nil {
					return err
				}
			}
		}
		if !found && add == nil {
			return nil
		}
		if !found {
			taken, err := sqldb.All(tx, scanID[string], `select id from users where $1 <> '' and lower(email) = $1`, strings.ToLower(add.Email))
			if err == nil && len(taken) > 0 {
				err = thole.Errorf(thole.CodeForbidden, "another account here has the address %s", plainText(add.Email)).WithHint("log in to it with its password, or ask who runs this server for an invitation")
			}
			if err != nil {
				return err
			}
			u, found, action = *add, true, "user.add"
			if err := insertPerson(tx, u); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(`insert into user_identities (issuer, subject, user_id, email, created_at, last_login_at) values ($1, $2, $3, $4, $5, $5)`,
			i.Issuer, i.Subject, u.ID, plainText(i.Email), instant(at)); err != nil {
			return err
		}
		e := userEntry(action, u)
		e.Reason = "proven by " + i.Issuer
		_, err = link(tx, e)
		return err
	})
	return u, found && err == nil, err
}
