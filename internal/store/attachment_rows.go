package store

import (
	"context"
	"database/sql"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/sqldb"
)

// Attachments is the durable record of holds on app-servers.
type Attachments struct{ db *DB }

var _ attachment.Store = (*Attachments)(nil)

// Attachments returns the attachment rows of this store.
func (db *DB) Attachments() *Attachments { return &Attachments{db} }

const attachmentColumns = `attachment_id, user_id, endpoint, thread_id, kind, address, state, epoch, server, client, dir, program, trust, wishes,
	startup_snapshot, last_snapshot, revision, note, created_at, updated_at, pinned, active_turn, version`

func scanAttachment(rows *sql.Rows) (a attachment.Attachment, err error) {
	var server, client, wishes, limit, current, pinned, active string
	var created, updated int64
	err = rows.Scan(&a.ID, &a.User, &a.Home, &a.Thread, &a.Kind, &a.Address, &a.State, &a.Epoch, &server, &client, &a.Dir, &a.Program, &a.Trust, &wishes,
		&limit, &current, &a.Revision, &a.Note, &created, &updated, &pinned, &active, &a.Version)
	if err != nil {
		return a, err
	}
	a.Created, a.Updated = thole.FromMillis(created), thole.FromMillis(updated)
	for _, part := range []struct {
		text string
		into any
	}{{server, &a.Process}, {client, &a.Client}, {wishes, &a.Wish}, {limit, &a.Cap}, {current, &a.Current}, {pinned, &a.Pinned}, {active, &a.Active}} {
		if part.text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(part.text), part.into); err != nil {
			return a, err
		}
	}
	return a, nil
}

func attachmentArgs(a *attachment.Attachment) ([]any, error) {
	var texts []string
	for _, v := range []any{a.Process, a.Client, a.Wish, a.Cap, a.Current, a.Pinned, a.Active} {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if string(b) == "null" {
			b = nil
		}
		texts = append(texts, string(b))
	}
	return []any{
		a.ID, a.User, a.Home, a.Thread, a.Kind, a.Address, a.State, a.Epoch, texts[0], texts[1], a.Dir, a.Program, a.Trust, texts[2],
		texts[3], texts[4], a.Revision, a.Note, thole.Millis(a.Created), thole.Millis(a.Updated), texts[5], texts[6], a.Version,
	}, nil
}

// InsertAttachment implements attachment.Store.
func (s *Attachments) InsertAttachment(ctx context.Context, a *attachment.Attachment) error {
	args, err := attachmentArgs(a)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, "attachment.insert", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`insert into attachments (`+attachmentColumns+`, server_id)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)`, append(args, s.db.server)...)
		return err
	})
}

// UpdateAttachmentIf implements attachment.Store.
func (s *Attachments) UpdateAttachmentIf(ctx context.Context, a *attachment.Attachment) (ok bool, err error) {
	args, err := attachmentArgs(a)
	if err != nil {
		return false, err
	}
	err = s.db.Update(ctx, "attachment.update", func(tx *sqldb.Tx) error {
		ok, err = tx.ExecOne(`update attachments set user_id = $2, endpoint = $3, thread_id = $4, kind = $5, address = $6, state = $7, epoch = $8,
			server = $9, client = $10, dir = $11, program = $12, trust = $13, wishes = $14, startup_snapshot = $15, last_snapshot = $16,
			revision = $17, note = $18, created_at = $19, updated_at = $20, pinned = $21, active_turn = $22, version = $23 + 1
			where attachment_id = $1 and version = $23`, args...)
		return err
	})
	if ok && err == nil {
		a.Version++
	}
	return ok, err
}

func (s *Attachments) one(ctx context.Context, where string, args ...any) (a *attachment.Attachment, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		found, err := sqldb.All(tx, scanAttachment, `select `+attachmentColumns+` from attachments where `+where, args...)
		if err == nil && len(found) > 0 {
			a = &found[0]
		}
		return err
	})
	return a, err
}

// Attachment implements attachment.Store.
func (s *Attachments) Attachment(ctx context.Context, id thole.AttachmentID) (*attachment.Attachment, error) {
	return s.one(ctx, `attachment_id = $1`, id)
}

// AttachmentOf implements attachment.Store.
func (s *Attachments) AttachmentOf(ctx context.Context, user thole.UserID, home string, thread thole.ThreadID) (*attachment.Attachment, error) {
	return s.one(ctx, `user_id = $1 and endpoint = $2 and thread_id = $3 and thread_id <> '' and state <> 'retired'`, user, home, thread)
}

// Attachments implements attachment.Store. Of the retired ones, which only a human
// looks at, the newest are enough; of the others none is left out. Those of other servers are
// on other machines.
func (s *Attachments) Attachments(ctx context.Context, all bool) (list []attachment.Attachment, err error) {
	query := `select ` + attachmentColumns + ` from attachments where server_id = $1 and (state <> 'retired'`
	if all {
		query += ` or attachment_id in (select attachment_id from attachments where state = 'retired' and server_id = $1 order by created_at desc, attachment_id desc limit 1000)`
	}
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list, err = sqldb.All(tx, scanAttachment, query+`) order by created_at desc, attachment_id desc`, s.db.server)
		return err
	})
	return list, err
}

// LastAttachment implements attachment.Store.
func (s *Attachments) LastAttachment(ctx context.Context, user thole.UserID, home string, thread thole.ThreadID) (*attachment.Attachment, error) {
	return s.one(ctx, `user_id = $1 and endpoint = $2 and thread_id = $3 and thread_id <> '' order by epoch desc, created_at desc limit 1`, user, home, thread)
}
