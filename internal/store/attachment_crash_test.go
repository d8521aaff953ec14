package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/testkit/crash"
)

// holds is a store with the holds on one thread's servers: "first" is pending,
// then live, then retired, and "second" follows it.
type holds struct{ *store.DB }

func openHolds(dir string, hook sqldb.Hook) (holds, error) {
	db, err := storetest.OpenAt(context.Background(), sqldb.Config{Path: filepath.Join(dir, "thole.db"), Hook: hook})
	return holds{db}, err
}

func (h holds) State() (string, error) { return crash.Rows(h.DB, "attachments") }

func (h holds) insert(id string, thread thole.ThreadID, st attachment.State, epoch int64) error {
	now := time.UnixMilli(1_700_000_000_000).UTC()
	return h.Attachments().InsertAttachment(context.Background(), &attachment.Attachment{
		ID: thole.AttachmentID(id), User: "u", Home: "/h", Thread: thread, Kind: attachment.Owned, Address: "unix:///s", State: st, Epoch: epoch,
		Process: procid.Identity{PID: 7, Boot: "b", Start: "9"}, Trust: attachment.StrictSafe, Created: now, Updated: now, Version: 1,
	})
}

func (h holds) update(change func(*attachment.Attachment)) error {
	a, err := h.Attachments().Attachment(context.Background(), "first")
	if err != nil {
		return err
	}
	change(a)
	ok, err := h.Attachments().UpdateAttachmentIf(context.Background(), a)
	if err == nil && !ok {
		err = fmt.Errorf("version %d lost the race", a.Version)
	}
	return err
}

func (h holds) Acts() []crash.Act {
	return []crash.Act{
		{Name: "start", Do: func() error { return h.insert("first", "", attachment.Pending, 1) }},
		{Name: "live", Do: func() error {
			return h.update(func(a *attachment.Attachment) {
				a.State, a.Thread, a.Epoch, a.Cap = attachment.Live, "t", 3, &attachment.PermissionSnapshot{Write: true, Roots: []string{"/x"}}
			})
		}},
		{Name: "retire", Do: func() error { return h.update(func(a *attachment.Attachment) { a.State = attachment.Retired }) }},
		{Name: "replace", Do: func() error { return h.insert("second", "t", attachment.Live, 4) }},
	}
}

// TestHoldsSurviveAKill: a thread has one hold or none, whichever process read a hold before
// the kill cannot write it over, and no epoch is given twice.
func TestHoldsSurviveAKill(t *testing.T) {
	crash.Acts(t, openHolds, func(t *testing.T, h holds, done []string) {
		ctx, s := context.Background(), h.Attachments()
		holder, epoch, version := thole.AttachmentID(""), int64(0), int64(len(done))
		switch len(done) {
		case 2:
			holder, epoch = "first", 3
		case 3:
			epoch = 3
		case 4:
			holder, epoch, version = "second", 4, 3
		}
		got, err := s.AttachmentOf(ctx, "u", "/h", "t")
		if err != nil || (got == nil) != (holder == "") || got != nil && got.ID != holder {
			t.Fatalf("after %v the hold is %+v, %v", done, got, err)
		}
		if last, err := s.LastAttachment(ctx, "u", "/h", "t"); err != nil || (last == nil) != (epoch == 0) || last != nil && last.Epoch != epoch {
			t.Fatalf("after %v the last hold is %+v, %v", done, last, err)
		}
		first, err := s.Attachment(ctx, "first")
		if err != nil || (first == nil) != (len(done) == 0) {
			t.Fatalf("after %v: %+v, %v", done, first, err)
		}
		if first != nil {
			if first.Version != version || slices.Contains(done, "live") && (first.Cap == nil || !first.Cap.Write) {
				t.Fatalf("after %v: %+v", done, first)
			}
			old := *first
			old.Version--
			old.State = attachment.Stale
			if ok, err := s.UpdateAttachmentIf(ctx, &old); err != nil || ok {
				t.Fatalf("what was read before the last change wrote: %v, %v", ok, err)
			}
		}
		err = h.insert("third", "t", attachment.Live, epoch+1)
		if taken := thole.CodeOf(err) == thole.CodeConflict; taken != (holder != "") || !taken && err != nil {
			t.Fatalf("after %v another hold: %v", done, err)
		}
	})
}
