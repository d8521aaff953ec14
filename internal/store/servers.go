package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/sqldb"
)

// Servers is the record of the servers of this store.
type Servers struct{ db *DB }

var _ roster.Store = (*Servers)(nil)

// Servers returns the servers of this store.
func (db *DB) Servers() *Servers { return &Servers{db} }

// oneAtATime makes joins wait for one another: each must see those before it.
var oneAtATime = sqldb.Statement{Text: `select pg_advisory_xact_lock(7741094327)`, Postgres: true}

const serverColumns = `id, place, run, address, version, orphan_ms, joined_at, heartbeat_at, departed, roles, protocol, draining, objects, peer, certificate`

func listServers(tx *sqldb.Tx) ([]roster.Server, error) {
	now := tx.Now()
	return sqldb.All(tx, func(rows *sql.Rows) (s roster.Server, err error) {
		var orphans, joined, beat int64
		var roles string
		err = rows.Scan(&s.ID, &s.Place, &s.Run, &s.Address, &s.Version, &orphans, &joined, &beat, &s.Departed, &roles, &s.Protocol, &s.Draining, &s.Objects, &s.Peer, &s.Certificate)
		for role := range strings.FieldsSeq(roles) {
			s.Roles = append(s.Roles, roster.Role(role))
		}
		s.Orphans, s.Joined, s.Beat = time.Duration(orphans)*time.Millisecond, thole.FromMillis(joined), thole.FromMillis(beat)
		s.Alive = !s.Departed && now.Sub(s.Beat) <= roster.DeadAfter
		return s, err
	}, `select `+serverColumns+` from servers order by id`)
}

// Join implements roster.Store. The first that shares the store takes over what belonged to
// the one server before it.
func (s *Servers) Join(ctx context.Context, who roster.Server) error {
	return s.db.Update(ctx, "server.join", func(tx *sqldb.Tx) error {
		if err := tx.Run(oneAtATime); err != nil {
			return err
		}
		there, err := listServers(tx)
		if err != nil {
			return err
		}
		if err := roster.Admit(who, there); err != nil {
			return err
		}
		roles := make([]string, len(who.Roles))
		for i, r := range who.Roles {
			roles[i] = string(r)
		}
		_, err = tx.Exec(`insert into servers (`+serverColumns+`) values ($1, $2, $3, $4, $5, $6, $7, $7, false, $8, $9, false, $10, $11, $12)
			on conflict (id) do update set place = excluded.place, run = excluded.run, address = excluded.address, version = excluded.version,
			orphan_ms = excluded.orphan_ms, joined_at = excluded.joined_at, heartbeat_at = excluded.heartbeat_at, departed = false, roles = excluded.roles,
			protocol = excluded.protocol, draining = false, objects = excluded.objects, peer = excluded.peer, certificate = excluded.certificate`,
			who.ID, who.Place, who.Run, who.Address, who.Version, who.Orphans.Milliseconds(), thole.Millis(tx.Now()), strings.Join(roles, " "), who.Protocol, who.Objects, who.Peer, who.Certificate)
		if err != nil || slices.ContainsFunc(there, func(o roster.Server) bool { return o.ID != who.ID && o.Protocol > 0 }) {
			return err
		}
		for _, table := range []string{"delivery_jobs", "attachments", "artifacts", "gateway_calls"} {
			if _, err := tx.Exec(`update `+table+` set server_id = $1 where server_id = ''`, who.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// Beat implements roster.Store.
func (s *Servers) Beat(ctx context.Context, id, run string) error {
	return s.mine(ctx, "server.beat", `heartbeat_at = $3`, id, run)
}

// Drain implements roster.Store.
func (s *Servers) Drain(ctx context.Context, id, run string) error {
	return s.mine(ctx, "server.drain", `heartbeat_at = $3, draining = true`, id, run)
}

// mine changes the row of a server whose process has it.
func (s *Servers) mine(ctx context.Context, step, to, id, run string) error {
	return s.db.Update(ctx, step, func(tx *sqldb.Tx) error {
		ok, err := tx.ExecOne(`update servers set `+to+` where id = $1 and run = $2 and not departed`, id, run, thole.Millis(tx.Now()))
		if err == nil && !ok {
			err = roster.ErrReplaced
		}
		return err
	})
}

// Take implements roster.Store.
func (s *Servers) Take(ctx context.Context, duty, holder string, life time.Duration) (ours bool, err error) {
	err = s.db.Update(ctx, "server.take_duty", func(tx *sqldb.Tx) error {
		now := thole.Millis(tx.Now())
		ours, err = tx.ExecOne(`insert into duties (name, holder, until) values ($1, $2, $3)
			on conflict (name) do update set holder = excluded.holder, until = excluded.until where duties.holder = $2 or duties.until < $4`, duty, holder, now+life.Milliseconds(), now)
		return err
	})
	return ours, err
}

// Drop implements roster.Store.
func (s *Servers) Drop(ctx context.Context, duty, holder string) error {
	return s.db.Update(ctx, "server.drop_duty", func(tx *sqldb.Tx) error {
		_, err := tx.ExecOne(`delete from duties where name = $1 and holder = $2`, duty, holder)
		return err
	})
}

// Leave implements roster.Store.
func (s *Servers) Leave(ctx context.Context, id, run string) error {
	return s.db.Update(ctx, "server.leave", func(tx *sqldb.Tx) error {
		_, err := tx.ExecOne(`update servers set heartbeat_at = $3, departed = true where id = $1 and run = $2 and not departed`, id, run, thole.Millis(tx.Now()))
		return err
	})
}

// List implements roster.Store.
func (s *Servers) List(ctx context.Context) (list []roster.Server, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list, err = listServers(tx)
		return err
	})
	return list, err
}

// ID is the store's own, and made by the first who asks.
func (db *DB) ID(ctx context.Context) (id string, err error) {
	err = db.Update(ctx, "store.id", func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(`insert into store_facts (name, value) values ('id', $1) on conflict (name) do nothing`, rand.Text()); err != nil {
			return err
		}
		return tx.QueryRow(`select value from store_facts where name = 'id'`).Scan(&id)
	})
	return id, err
}
