package store_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/store/storetest"
)

func TestAttachmentRows(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		ctx := context.Background()
		s := open(t).Attachments()
		now := time.UnixMilli(1_700_000_000_000).UTC()
		row := func(id, thread string, st attachment.State) *attachment.Attachment {
			return &attachment.Attachment{
				ID: thole.AttachmentID(id), User: "u", Home: "/h", Thread: thole.ThreadID(thread), Kind: attachment.Owned, Address: "unix:///s",
				State: st, Epoch: 1, Process: procid.Identity{PID: 7, Boot: "b", Start: "9"}, Trust: attachment.StrictSafe,
				Wish: attachment.Wishes{Approval: attachment.Auto, Network: attachment.No, Write: attachment.Yes}, Created: now, Updated: now, Version: 1,
			}
		}
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		a := row("a", "t", attachment.Live)
		ok(s.InsertAttachment(ctx, a))
		if got, err := s.Attachment(ctx, "a"); err != nil || !reflect.DeepEqual(got, a) {
			t.Fatalf("read %+v, %v; wrote %+v", got, err, a)
		}
		if err := s.InsertAttachment(ctx, row("b", "t", attachment.Live)); thole.CodeOf(err) != thole.CodeConflict {
			t.Fatalf("a second hold on one thread: %v", err)
		}
		ok(s.InsertAttachment(ctx, row("p", "", attachment.Pending)))
		ok(s.InsertAttachment(ctx, row("q", "", attachment.Pending))) // threads that do not exist yet do not collide
		if err := s.InsertAttachment(ctx, row("r", "", attachment.Live)); err == nil {
			t.Fatal("a live hold on no thread")
		}
		a.State, a.Cap, a.Epoch = attachment.Retired, &attachment.PermissionSnapshot{Write: true, Roots: []string{"/x"}}, 4
		a.Pinned = &attachment.Pin{Epoch: 4, Before: attachment.Settings{ApprovalPolicy: []byte(`"on-request"`), Sandbox: []byte(`{"type":"readOnly"}`)}, During: attachment.Settings{ApprovalPolicy: []byte(`"never"`), Sandbox: []byte(`{}`)}}
		if done, err := s.UpdateAttachmentIf(ctx, a); err != nil || !done || a.Version != 2 {
			t.Fatal(done, err, a.Version)
		}
		stale := *a
		stale.Version = 1
		if done, err := s.UpdateAttachmentIf(ctx, &stale); err != nil || done {
			t.Fatal("a stale version wrote", err)
		}
		if got, err := s.AttachmentOf(ctx, "u", "/h", "t"); err != nil || got != nil {
			t.Fatal("a retired hold is still found", got, err)
		}
		if last, err := s.LastAttachment(ctx, "u", "/h", "t"); err != nil || !reflect.DeepEqual(last, a) {
			t.Fatal(last, err)
		}
		ok(s.InsertAttachment(ctx, row("b", "t", attachment.Live)))
		if all, err := s.Attachments(ctx, true); err != nil || len(all) != 4 {
			t.Fatal(len(all), err)
		}
		if open, err := s.Attachments(ctx, false); err != nil || len(open) != 3 {
			t.Fatal(len(open), err)
		}
	})
}
