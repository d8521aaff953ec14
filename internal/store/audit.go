package store

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/sqldb"
)

// Audit is the chain of what was done and refused: audit.Store.
type Audit struct{ db *DB }

// Audit gives the chain's side of the store.
func (db *DB) Audit() *Audit { return &Audit{db} }

var _ audit.Store = (*Audit)(nil)

const auditTopic = "audit"

// link appends an entry in the transaction of what it is about. It takes the head's row, the
// last lock of a transaction, so that two of them never wait for each other.
func link(tx *sqldb.Tx, e audit.Entry) (audit.Link, error) {
	var h audit.Head
	if err := tx.QueryRow(`select seq, hash from audit_head where one = 1`+tx.ForUpdate()).Scan(&h.Seq, &h.Hash); err != nil {
		if sqldb.NoRows(err) {
			err = thole.Errorf(thole.CodeInternal, "the audit chain has no head").WithHint("thole audit verify")
		}
		return audit.Link{}, err
	}
	if e.At.IsZero() {
		e.At = tx.Now()
	}
	l := cleaned(e.Complete(tx.Context())).LinkTo(h)
	if _, err := tx.Exec(`insert into audit_events (seq, at, actor, via, login, address, client, on_behalf, action, resource_kind, resource_id, app_id, project_id, owner_id,
		outcome, reason, before, after, prev, hash) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
		l.Seq, instant(l.At), l.Actor, l.Via, l.Login, l.Address, l.Client, l.OnBehalf, l.Action, l.Kind, l.ID, l.App, l.Project, l.Owner,
		string(l.Outcome), l.Reason, l.Before, l.After, l.Prev, l.Hash); err != nil {
		return l, err
	}
	if err := tx.Must("the audit chain's head is the link before", `update audit_head set seq = $1, hash = $2 where one = 1 and seq = $3 and hash = $4`, l.Seq, l.Hash, h.Seq, h.Hash); err != nil {
		return l, err
	}
	tx.Notify(auditTopic, "")
	return l, nil
}

// byActor names the actor that a machine was given.
func byActor(tx *sqldb.Tx, a thole.Actor, e audit.Entry) audit.Entry {
	return e.From(audit.SourceFor(tx.Context(), a))
}

func stateFact(state string) string {
	if state == "" {
		return ""
	}
	return audit.Facts(map[string]string{"state": state})
}

// cleaned makes text that both engines store as it is, and bounds it.
func cleaned(e audit.Entry) audit.Entry {
	for _, s := range []*string{&e.Actor, &e.Via, &e.Login, &e.Address, &e.Client, &e.Action, &e.Kind, &e.ID, &e.Reason} {
		*s = boundText(*s, 400)
	}
	e.Before, e.After = boundText(e.Before, 16<<10), boundText(e.After, 16<<10)
	return e
}

func boundText(s string, limit int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

// Append implements audit.Store.
func (a *Audit) Append(ctx context.Context, e audit.Entry) (l audit.Link, err error) {
	err = a.db.Update(ctx, "audit.append", func(tx *sqldb.Tx) error {
		l, err = link(tx, e)
		return err
	})
	return l, err
}

// Head implements audit.Store.
func (a *Audit) Head(ctx context.Context) (h audit.Head, err error) {
	err = a.db.View(ctx, func(tx *sqldb.Tx) error {
		return tx.QueryRow(`select seq, hash from audit_head where one = 1`).Scan(&h.Seq, &h.Hash)
	})
	if sqldb.NoRows(err) {
		err = thole.Errorf(thole.CodeInternal, "the audit chain has no head: its row was removed")
	}
	return h, err
}

const selectLink = `select seq, at, actor, via, login, address, client, on_behalf, action, resource_kind, resource_id, app_id, project_id, owner_id,
	outcome, reason, before, after, prev, hash from audit_events`

func scanLink(rows *sql.Rows) (l audit.Link, err error) {
	var at int64
	err = rows.Scan(&l.Seq, &at, &l.Actor, &l.Via, &l.Login, &l.Address, &l.Client, &l.OnBehalf, &l.Action, &l.Kind, &l.ID, &l.App, &l.Project, &l.Owner,
		&l.Outcome, &l.Reason, &l.Before, &l.After, &l.Prev, &l.Hash)
	l.At = thole.FromMillis(at)
	return l, err
}

// Links implements audit.Store.
func (a *Audit) Links(ctx context.Context, after int64, limit int) (all []audit.Link, err error) {
	err = a.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, scanLink, selectLink+` where seq > $1 order by seq limit $2`, after, limit)
		return err
	})
	return all, err
}

// Latest implements audit.Store.
func (a *Audit) Latest(ctx context.Context, f audit.Filter) (all []audit.Link, err error) {
	where, args := []string{"1 = 1"}, []any{}
	arg := func(v any) string { args = append(args, v); return "$" + strconv.Itoa(len(args)) }
	if f.Actor != "" {
		where = append(where, "actor = "+arg(f.Actor))
	}
	if f.Resource != "" {
		where = append(where, "resource_id = "+arg(f.Resource))
	}
	if f.Outcome != "" {
		where = append(where, "outcome = "+arg(string(f.Outcome)))
	}
	if f.Before > 0 {
		where = append(where, "seq < "+arg(f.Before))
	}
	if strings.HasSuffix(f.Action, ".") {
		where = append(where, "substr(action, 1, "+strconv.Itoa(len(f.Action))+") = "+arg(f.Action))
	} else if f.Action != "" {
		where = append(where, "action = "+arg(f.Action))
	}
	err = a.db.View(ctx, func(tx *sqldb.Tx) error {
		all, err = sqldb.All(tx, scanLink, selectLink+` where `+strings.Join(where, " and ")+` order by seq desc limit `+strconv.Itoa(f.Limit), args...)
		return err
	})
	return all, err
}

// Watch implements audit.Store.
func (a *Audit) Watch(fn func()) (cancel func()) {
	return a.db.Subscribe(auditTopic, func(string) { fn() })
}
