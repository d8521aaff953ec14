package store

import (
	"context"
	"database/sql"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/plugin"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/strictjson"
)

// Plugins is the durable record of plugins and their leases. Each server of a store sees
// those of its own machine.
type Plugins struct{ db *DB }

var _ plugin.Store = (*Plugins)(nil)

// Plugins returns the plugin rows of this store.
func (db *DB) Plugins() *Plugins { return &Plugins{db} }

// PutInstance implements plugin.Store.
func (s *Plugins) PutInstance(ctx context.Context, in plugin.Instance, gone func(procid.Identity) bool) (ok bool, err error) {
	body, err := json.Marshal(in.Process)
	if err != nil {
		return false, err
	}
	err = s.db.Update(ctx, "plugin.put_instance", func(tx *sqldb.Tx) error {
		ok = false
		var text string
		err := tx.QueryRow(`select process from plugin_instances where user_id = $1 and plugin = $2 and instance_id = $3 and server_id = $4`+tx.ForUpdate(),
			string(in.User), in.Plugin, in.ID, s.db.server).Scan(&text)
		if err != nil && !sqldb.NoRows(err) {
			return err
		}
		if err == nil {
			var have procid.Identity
			if err := strictjson.Unmarshal([]byte(text), &have); err != nil {
				return err
			}
			if have != in.Process && !gone(have) {
				return nil
			}
		}
		ok = true
		_, err = tx.Exec(`insert into plugin_instances (user_id, plugin, instance_id, release, process, hello_at, server_id) values ($1, $2, $3, $4, $5, $6, $7)
			on conflict (user_id, plugin, instance_id, server_id) do update set release = $4, process = $5, hello_at = $6`,
			string(in.User), in.Plugin, in.ID, in.Release, string(body), thole.Millis(in.HelloAt), s.db.server)
		return err
	})
	return ok, err
}

// Instances implements plugin.Store.
func (s *Plugins) Instances(ctx context.Context) (list []plugin.Instance, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list, err = sqldb.All(tx, func(r *sql.Rows) (in plugin.Instance, err error) {
			var process string
			if err := r.Scan(&in.User, &in.Plugin, &in.ID, &in.Release, &process, millis{&in.HelloAt}); err != nil {
				return in, err
			}
			return in, strictjson.Unmarshal([]byte(process), &in.Process)
		}, `select user_id, plugin, instance_id, release, process, hello_at from plugin_instances where server_id = $1 order by user_id, plugin, instance_id`, s.db.server)
		return err
	})
	return list, err
}

// ForgetInstance implements plugin.Store.
func (s *Plugins) ForgetInstance(ctx context.Context, in plugin.Instance) error {
	body, err := json.Marshal(in.Process)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, "plugin.forget_instance", func(tx *sqldb.Tx) error {
		ok, err := tx.ExecOne(`delete from plugin_instances where user_id = $1 and plugin = $2 and instance_id = $3 and process = $4 and server_id = $5`,
			string(in.User), in.Plugin, in.ID, string(body), s.db.server)
		if err != nil || !ok {
			return err
		}
		_, err = tx.Exec(`delete from app_server_leases where user_id = $1 and plugin = $2 and instance_id = $3 and server_id = $4`, string(in.User), in.Plugin, in.ID, s.db.server)
		return err
	})
}

// PutLease implements plugin.Store.
func (s *Plugins) PutLease(ctx context.Context, l plugin.Lease) error {
	return s.db.Update(ctx, "plugin.put_lease", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`insert into app_server_leases (lease_id, user_id, plugin, instance_id, endpoint, thread_id, attachment_id, lease_until, server_id)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			on conflict (lease_id) do update set attachment_id = $7, lease_until = $8, server_id = $9`,
			l.ID, string(l.User), l.Plugin, l.Instance, l.Endpoint, string(l.Thread), string(l.Attachment), thole.Millis(l.Until), s.db.server)
		return err
	})
}

const appServerLeases = `select lease_id, user_id, plugin, instance_id, endpoint, thread_id, attachment_id, lease_until from app_server_leases `

func scanAppServerLease(r *sql.Rows) (l plugin.Lease, err error) {
	return l, r.Scan(&l.ID, &l.User, &l.Plugin, &l.Instance, &l.Endpoint, &l.Thread, &l.Attachment, millis{&l.Until})
}

// Lease implements plugin.Store.
func (s *Plugins) Lease(ctx context.Context, id string) (l *plugin.Lease, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		l = nil
		found, err := sqldb.All(tx, scanAppServerLease, appServerLeases+`where lease_id = $1 and server_id = $2`, id, s.db.server)
		if err == nil && len(found) > 0 {
			l = &found[0]
		}
		return err
	})
	return l, err
}

// Leases implements plugin.Store.
func (s *Plugins) Leases(ctx context.Context) (list []plugin.Lease, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list, err = sqldb.All(tx, scanAppServerLease, appServerLeases+`where server_id = $1 order by lease_until, lease_id`, s.db.server)
		return err
	})
	return list, err
}

// DropLease implements plugin.Store.
func (s *Plugins) DropLease(ctx context.Context, id string) error {
	return s.db.Update(ctx, "plugin.drop_lease", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`delete from app_server_leases where lease_id = $1`, id)
		return err
	})
}
