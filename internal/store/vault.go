package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/vault"
)

// Vault are the rows of secrets: vault.Store.
type Vault struct{ db *DB }

// Vault gives the secrets' side of the store.
func (db *DB) Vault() *Vault { return &Vault{db} }

var _ vault.Store = (*Vault)(nil)

var encoding = base64.StdEncoding

const selectVaultKey = `select id, owner_kind, owner_id, kek_id, wrapped, created_at from vault_keys`

func scanVaultKey(rows *sql.Rows) (k vault.Key, err error) {
	var wrapped string
	var created int64
	if err := rows.Scan(&k.ID, &k.Owner.Kind, &k.Owner.ID, &k.KEK, &wrapped, &created); err != nil {
		return k, err
	}
	k.Created = thole.FromMillis(created)
	k.Wrapped, err = encoding.DecodeString(wrapped)
	return k, err
}

// Key implements vault.Store.
func (s *Vault) Key(ctx context.Context, o vault.Owner) (vault.Key, bool, error) {
	return viewFirst(ctx, s.db, scanVaultKey, selectVaultKey+` where owner_kind = $1 and owner_id = $2`, o.Kind, o.ID)
}

// Keys implements vault.Store.
func (s *Vault) Keys(ctx context.Context) (all []vault.Key, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, scanVaultKey, selectVaultKey+` order by created_at, id`)
		return err
	})
	return all, err
}

// AddKey implements vault.Store.
func (s *Vault) AddKey(ctx context.Context, k vault.Key) (got vault.Key, err error) {
	err = s.db.Update(ctx, "vault.add_key", func(tx *sqldb.Tx) error {
		if _, err := tx.ExecOne(`insert into vault_keys (id, owner_kind, owner_id, kek_id, wrapped, created_at) values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
			k.ID, k.Owner.Kind, k.Owner.ID, k.KEK, encoding.EncodeToString(k.Wrapped), instant(k.Created)); err != nil {
			return err
		}
		all, err := sqldb.All(tx, scanVaultKey, selectVaultKey+` where owner_kind = $1 and owner_id = $2`, k.Owner.Kind, k.Owner.ID)
		if err == nil && len(all) == 1 {
			got = all[0]
		}
		return err
	})
	return got, err
}

// RewrapKeyIf implements vault.Store.
func (s *Vault) RewrapKeyIf(ctx context.Context, was, k vault.Key, c vault.Change) error {
	return s.db.Update(ctx, "vault.rewrap_key", func(tx *sqldb.Tx) error {
		ok, err := tx.ExecOne(`update vault_keys set kek_id = $3, wrapped = $4 where id = $1 and wrapped = $2`,
			k.ID, encoding.EncodeToString(was.Wrapped), k.KEK, encoding.EncodeToString(k.Wrapped))
		return changed(tx, ok, err, c)
	})
}

// changed appends the audit row of a compare-and-set that hit.
func changed(tx *sqldb.Tx, ok bool, err error, c vault.Change) error {
	if err != nil {
		return err
	}
	if !ok {
		return thole.Errorf(thole.CodeConflict, "the secret was changed meanwhile")
	}
	_, err = tx.Exec(`insert into vault_changes (subject, seq, at, actor, via, client, event, from_state, to_state, version)
		select $1, coalesce(max(seq), 0) + 1, $2, $3, $4, $5, $6, $7, $8, $9 from vault_changes where subject = $1`,
		c.Subject, instant(c.At), c.Actor.Who(), c.Actor.Via, c.Actor.Client, c.Event, c.From, c.To, c.Version)
	if err != nil {
		return err
	}
	_, err = link(tx, byActor(tx, c.Actor, audit.Entry{At: c.At, Action: "vault." + c.Event, Kind: "secret", ID: c.Subject, Before: stateFact(c.From), After: stateFact(c.To)}))
	return err
}

// AddItem implements vault.Store.
func (s *Vault) AddItem(ctx context.Context, i vault.Item, key string, v vault.Sealed, limit int, c vault.Change) error {
	return s.db.Update(ctx, "vault.add_item", func(tx *sqldb.Tx) error {
		// The key's row orders two callers that both see room for one more, and a revoke
		// that would remove it.
		keys, err := sqldb.All(tx, scanID[string], `select id from vault_keys where id = $1`+tx.ForUpdate(), key)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return thole.Errorf(thole.CodeConflict, "the owner's last secret was removed at the same time").WithHint("try again")
		}
		live, named := 0, 0
		if err := tx.QueryRow(`select count(*), count(case when name = $3 then 1 end) from vault_items where owner_kind = $1 and owner_id = $2 and state <> 'revoked'`,
			i.Owner.Kind, i.Owner.ID, i.Name).Scan(&live, &named); err != nil {
			return err
		}
		if named > 0 {
			return thole.Errorf(thole.CodeConflict, "there is a secret %s already", i.Name).WithHint("replace its value, or revoke it first")
		}
		if live >= limit {
			return thole.Errorf(thole.CodeOverloaded, "there are %d secrets already", live).WithHint("revoke one that is not used any more")
		}
		ok, err := tx.ExecOne(`insert into vault_items (id, owner_kind, owner_id, name, kind, provider, state, etag, version, fingerprint, key_id, nonce, ciphertext,
			created_by, created_at, updated_at, last_used_at, expires_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, 0, $17)`,
			i.ID, i.Owner.Kind, i.Owner.ID, i.Name, i.Kind, i.Provider, i.State, i.ETag, i.Version, i.Fingerprint, key, encoding.EncodeToString(v.Nonce), encoding.EncodeToString(v.Text),
			i.CreatedBy, instant(i.Created), instant(i.Updated), instant(i.Expires))
		return changed(tx, ok, err, c)
	})
}

// ReplaceItemIf implements vault.Store. An item keeps its key while it has a value.
func (s *Vault) ReplaceItemIf(ctx context.Context, was string, i vault.Item, v vault.Sealed, c vault.Change) error {
	return s.db.Update(ctx, "vault.replace_item", func(tx *sqldb.Tx) error {
		ok, err := tx.ExecOne(`update vault_items set state = $3, etag = $4, version = $5, fingerprint = $6, nonce = $7, ciphertext = $8, updated_at = $9
			where id = $1 and etag = $2 and state <> 'revoked'`,
			i.ID, was, i.State, i.ETag, i.Version, i.Fingerprint, encoding.EncodeToString(v.Nonce), encoding.EncodeToString(v.Text), instant(i.Updated))
		return changed(tx, ok, err, c)
	})
}

// MarkItemIf implements vault.Store.
func (s *Vault) MarkItemIf(ctx context.Context, was string, i vault.Item, c vault.Change) error {
	return s.db.Update(ctx, "vault.mark_item", func(tx *sqldb.Tx) error {
		ok, err := tx.ExecOne(`update vault_items set state = $3, etag = $4, updated_at = $5 where id = $1 and etag = $2 and state <> 'revoked'`,
			i.ID, was, i.State, i.ETag, instant(i.Updated))
		return changed(tx, ok, err, c)
	})
}

// RevokeItemIf implements vault.Store.
func (s *Vault) RevokeItemIf(ctx context.Context, was string, i vault.Item, c vault.Change) error {
	return s.db.Update(ctx, "vault.revoke_item", func(tx *sqldb.Tx) error {
		keys, err := sqldb.All(tx, scanID[string], `select id from vault_keys where owner_kind = $1 and owner_id = $2`+tx.ForUpdate(), i.Owner.Kind, i.Owner.ID)
		if err != nil {
			return err
		}
		ok, err := tx.ExecOne(`update vault_items set state = $3, etag = $4, updated_at = $5, key_id = null, nonce = '', ciphertext = '' where id = $1 and etag = $2 and state <> 'revoked'`,
			i.ID, was, i.State, i.ETag, instant(i.Updated))
		if err := changed(tx, ok, err, c); err != nil {
			return err
		}
		for _, key := range keys {
			if _, err := tx.ExecOne(`delete from vault_keys where id = $1 and not exists (select 1 from vault_items where key_id = $1)`, key); err != nil {
				return err
			}
		}
		return nil
	})
}

const itemColumns = `i.id, i.owner_kind, i.owner_id, i.name, i.kind, i.provider, i.state, i.etag, i.version, i.fingerprint, i.created_by, i.created_at, i.updated_at, i.last_used_at, i.expires_at`

func itemFields(i *vault.Item, at *[4]int64) []any {
	return []any{&i.ID, &i.Owner.Kind, &i.Owner.ID, &i.Name, &i.Kind, &i.Provider, &i.State, &i.ETag, &i.Version, &i.Fingerprint, &i.CreatedBy, &at[0], &at[1], &at[2], &at[3]}
}

func itemTimes(i *vault.Item, at [4]int64) {
	i.Created, i.Updated, i.Used, i.Expires = thole.FromMillis(at[0]), thole.FromMillis(at[1]), thole.FromMillis(at[2]), thole.FromMillis(at[3])
}

func scanSecret(rows *sql.Rows) (i vault.Item, err error) {
	var at [4]int64
	err = rows.Scan(itemFields(&i, &at)...)
	itemTimes(&i, at)
	return i, err
}

// Item implements vault.Store.
func (s *Vault) Item(ctx context.Context, id vault.ItemID) (vault.Item, bool, error) {
	return viewFirst(ctx, s.db, scanSecret, `select `+itemColumns+` from vault_items i where i.id = $1`, id)
}

// Items implements vault.Store.
func (s *Vault) Items(ctx context.Context, f vault.Filter) (all []vault.Item, err error) {
	var where []string
	var args []any
	arg := func(v any) string { args = append(args, v); return fmt.Sprintf("$%d", len(args)) }
	if f.Owners != nil {
		owners := []string{"false"}
		for _, o := range f.Owners {
			owners = append(owners, "i.owner_kind = "+arg(string(o.Kind))+" and i.owner_id = "+arg(o.ID))
		}
		where = append(where, "("+strings.Join(owners, " or ")+")")
	}
	for column, v := range map[string]string{"name": f.Name, "kind": string(f.Kind), "provider": f.Provider} {
		if v != "" {
			where = append(where, "i."+column+" = "+arg(v))
		}
	}
	if !f.Revoked {
		where = append(where, "i.state <> 'revoked'")
	}
	query := `select ` + itemColumns + ` from vault_items i`
	if len(where) > 0 {
		query += ` where ` + strings.Join(where, " and ")
	}
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, scanSecret, query+` order by i.created_at, i.id`, args...)
		return err
	})
	return all, err
}

// Stored implements vault.Store.
func (s *Vault) Stored(ctx context.Context, id vault.ItemID, u vault.Use) (vault.Stored, bool, error) {
	return viewFirst(ctx, s.db, scanStored, `select `+itemColumns+`, i.nonce, i.ciphertext, coalesce(k.id, ''), coalesce(k.kek_id, ''), coalesce(k.wrapped, ''),
		case when $3 <> '' and exists (select 1 from vault_uses u where u.item_id = i.id and u.thread_id = $2 and u.turn_id = $3 and u.executor_id = $4 and u.purpose = $5) then 1 else 0 end
		from vault_items i left join vault_keys k on k.id = i.key_id where i.id = $1`, id, string(u.Thread), string(u.Turn), string(u.Executor), u.Purpose)
}

func scanStored(rows *sql.Rows) (s vault.Stored, err error) {
	var at [4]int64
	var nonce, text, wrapped string
	var used int64
	if err := rows.Scan(append(itemFields(&s.Item, &at), &nonce, &text, &s.Key.ID, &s.Key.KEK, &wrapped, &used)...); err != nil {
		return s, err
	}
	itemTimes(&s.Item, at)
	s.Key.Owner, s.Used = s.Item.Owner, used == 1
	for to, from := range map[*[]byte]string{&s.Sealed.Nonce: nonce, &s.Sealed.Text: text, &s.Key.Wrapped: wrapped} {
		if *to, err = encoding.DecodeString(from); err != nil {
			return s, err
		}
	}
	return s, nil
}

// UseItemIf implements vault.Store.
func (s *Vault) UseItemIf(ctx context.Context, id vault.ItemID, etag string, u vault.Use) error {
	return s.db.Update(ctx, "vault.use_item", func(tx *sqldb.Tx) error {
		ok, err := tx.ExecOne(`update vault_items set last_used_at = $3 where id = $1 and etag = $2 and state = 'active'`, id, etag, instant(u.At))
		if err != nil {
			return err
		}
		if !ok {
			return thole.Errorf(thole.CodeConflict, "the secret was changed meanwhile")
		}
		_, err = tx.Exec(`insert into vault_uses (item_id, thread_id, turn_id, executor_id, purpose, at) values ($1, $2, $3, $4, $5, $6)
			on conflict (item_id, thread_id, turn_id, executor_id, purpose) do update set at = excluded.at`,
			id, u.Thread, u.Turn, u.Executor, u.Purpose, instant(u.At))
		return err
	})
}

// Uses implements vault.Store.
func (s *Vault) Uses(ctx context.Context, id vault.ItemID, limit int) (all []vault.Use, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, func(rows *sql.Rows) (u vault.Use, err error) {
			var at int64
			err = rows.Scan(&u.Thread, &u.Turn, &u.Executor, &u.Purpose, &at)
			u.At = thole.FromMillis(at)
			return u, err
		}, `select thread_id, turn_id, executor_id, purpose, at from vault_uses where item_id = $1 order by at desc, turn_id desc, purpose limit $2`, id, limit)
		return err
	})
	return all, err
}

// Changes implements vault.Store.
func (s *Vault) Changes(ctx context.Context, subject string, limit int) (all []vault.Change, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, func(rows *sql.Rows) (c vault.Change, err error) {
			var at int64
			err = rows.Scan(&c.Subject, &at, &c.Actor.User, &c.Actor.Via, &c.Actor.Client, &c.Event, &c.From, &c.To, &c.Version)
			c.At = thole.FromMillis(at)
			return c, err
		}, `select subject, at, actor, via, client, event, from_state, to_state, version from vault_changes where subject = $1 order by seq desc limit $2`, subject, limit)
		return err
	})
	return all, err
}

// viewFirst reads the row that a query has at most one of.
func viewFirst[T any](ctx context.Context, db *DB, scan func(*sql.Rows) (T, error), query string, args ...any) (v T, found bool, err error) {
	err = db.View(ctx, func(tx *sqldb.Tx) error {
		all, err := sqldb.All(tx, scan, query, args...)
		if len(all) > 0 {
			v, found = all[0], true
		}
		return err
	})
	return v, found, err
}

// VaultKEKs lists the keys that data keys of the SQLite store at path are wrapped with,
// without opening the store. A store from before there were secrets has none.
func VaultKEKs(ctx context.Context, path string) ([]string, error) {
	return sqldb.Peek(ctx, path, "vault_keys", `select distinct kek_id from vault_keys order by 1`)
}
