package store

import (
	"context"
	"database/sql"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	login "github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/sqldb"
)

// AddDevice implements session.Store.
func (s *LoginSessions) AddDevice(ctx context.Context, d login.Device, limit, ofAddress int) error {
	return s.db.Update(ctx, "session.add_device", func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(`delete from device_logins where expires_at <= $1`, instant(d.Created)); err != nil {
			return err
		}
		var all, here int64
		if err := tx.QueryRow(`select count(*), coalesce(sum(case when address = $1 then 1 else 0 end), 0) from device_logins`, d.Address).Scan(&all, &here); err != nil {
			return err
		}
		if all >= int64(limit) || here >= int64(ofAddress) {
			return thole.Errorf(thole.CodeOverloaded, "too many programs wait to be let in").WithHint("confirm or refuse those that wait, or try again in %d minutes", int(login.DeviceLife.Minutes()))
		}
		fresh, err := tx.ExecOne(`insert into device_logins (code_hash, token_hash, name, scope, address, created_at, expires_at)
			select $1, $2, $3, $4, $5, $6, $7 where not exists (select 1 from api_tokens where token_hash = $2) on conflict do nothing`,
			d.Hash, d.Token, d.Name, string(d.Scope), d.Address, instant(d.Created), instant(d.Expires))
		if err == nil && !fresh {
			err = thole.Errorf(thole.CodeConflict, "this program asked before")
		}
		return err
	})
}

// Device implements session.Store.
func (s *LoginSessions) Device(ctx context.Context, hash string, now time.Time) (d login.Device, found bool, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err := sqldb.All(tx, func(rows *sql.Rows) (d login.Device, err error) {
			var created, expires int64
			err = rows.Scan(&d.Hash, &d.Token, &d.Name, &d.Scope, &d.Address, &created, &expires)
			d.Created, d.Expires = thole.FromMillis(created), thole.FromMillis(expires)
			return d, err
		}, `select code_hash, token_hash, name, scope, address, created_at, expires_at from device_logins where code_hash = $1 and expires_at > $2`, hash, instant(now))
		if len(all) > 0 {
			d, found = all[0], true
		}
		return err
	})
	return d, found, err
}

// DeviceState implements session.Store.
func (s *LoginSessions) DeviceState(ctx context.Context, token string, now time.Time) (waits, confirmed bool, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err := sqldb.All(tx, scanID[string], `select 'waits' from device_logins where token_hash = $1 and expires_at > $2
			union all select 'confirmed' from api_tokens where token_hash = $1`, token, instant(now))
		for _, one := range all {
			waits, confirmed = waits || one == "waits", confirmed || one == "confirmed"
		}
		return err
	})
	return waits, confirmed, err
}

// RefuseDevice implements session.Store.
func (s *LoginSessions) RefuseDevice(ctx context.Context, hash string) error {
	return s.db.Update(ctx, "session.refuse_device", func(tx *sqldb.Tx) error {
		gone, err := tx.ExecOne(`delete from device_logins where code_hash = $1`, hash)
		if err != nil || !gone {
			return err
		}
		_, err = link(tx, audit.Entry{Action: "device.refuse", Kind: "device"})
		return err
	})
}

// ConfirmDevice implements session.Store.
func (s *LoginSessions) ConfirmDevice(ctx context.Context, hash string, t login.Token, limit int) (found bool, err error) {
	err = s.db.Update(ctx, "session.confirm_device", func(tx *sqldb.Tx) error {
		if found, err = tx.ExecOne(`delete from device_logins where code_hash = $1 and token_hash = $2 and expires_at > $3`, hash, t.Hash, instant(t.Created)); err != nil || !found {
			return err
		}
		return addToken(tx, t, limit, "")
	})
	return found && err == nil, err
}
