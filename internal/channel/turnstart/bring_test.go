package turnstart_test

import (
	"context"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/turnstart"
)

// nobody holds no session, and says what Provide is asked.
type nobody struct {
	sessions
	epoch int64
	row   *attachment.Attachment
	err   error // of Provide
	asked []keeper.Open
}

func (n *nobody) Of(context.Context, thole.UserID, string, thole.ThreadID) (attachment.Attachment, error) {
	return attachment.Attachment{}, thole.Errorf(thole.CodeNotFound, "none")
}

func (n *nobody) ByID(context.Context, thole.AttachmentID) (attachment.Attachment, error) {
	if n.row == nil {
		return attachment.Attachment{}, thole.Errorf(thole.CodeNotFound, "none")
	}
	return *n.row, nil
}

func (n *nobody) Epoch(context.Context, thole.AttachmentID) (int64, error) { return n.epoch, nil }

func (n *nobody) Provide(_ context.Context, _ thole.AttachmentID, _ int64, o keeper.Open) (attachment.Attachment, error) {
	n.asked = append(n.asked, o)
	return attachment.Attachment{}, n.err
}

func (n *nobody) Autopsy(context.Context, attachment.Attachment, appclient.Options) (*appclient.Client, func(), error) {
	panic("no store is opened for a server that never ran")
}

func brings() *thole.PluginTarget {
	return &thole.PluginTarget{Ownership: thole.OwnershipDelivery, Session: "own", Epoch: 1, Program: "codex", Trust: "strict-safe"}
}

// Before the barrier a server that a delivery brings is only judged; after it, what keeps it
// from beginning is a reason to hold, and that another session has the thread is not one.
func TestBroughtServerBeginsAfterTheBarrier(t *testing.T) {
	n := &nobody{epoch: 3}
	c := turnstart.New(n, nil)
	defer c.Close()
	q := channel.Query{User: thole.LocalUser, Endpoint: "/h", Thread: "t", Batch: "b", Policy: thole.DeliveryPolicy{ReadOnly: true}}
	if r, err := c.Probe(bg, q); err != nil || r.Why != channel.ReasonNoSession {
		t.Fatalf("%+v, %v", r, err)
	}
	q.Brings = brings()
	r, err := c.Probe(bg, q)
	if err != nil || r.Verdict != channel.Now || r.Attachment != "own" || r.Epoch != 3 || r.Mode != thole.ModeTurnStart {
		t.Fatalf("%+v, %v", r, err)
	}
	unsafe := q
	unsafe.Policy = thole.UnknownDeliveryPolicy
	if r, err := c.Probe(bg, unsafe); err != nil || r.Verdict != channel.Never || r.Why != channel.ReasonPolicy {
		t.Fatalf("a result that may need anything: %+v, %v", r, err)
	}
	if len(n.asked) != 0 {
		t.Fatal("a server was started before the barrier")
	}
	p := channel.Proposal{User: q.User, Thread: q.Thread, Batch: q.Batch, Mode: r.Mode, Request: "r", Marker: "m", Attachment: r.Attachment, Epoch: r.Epoch, Asked: q}
	for code, hold := range map[thole.Code]channel.Reason{thole.CodeUnavailable: channel.ReasonNoServer, thole.CodeConflict: "", thole.CodeBusy: ""} {
		n.err = thole.Errorf(code, "no")
		a, err := c.Propose(bg, p)
		if err != nil || a.Acceptance != thole.Rejected || a.Hold != hold {
			t.Errorf("%s: %+v, %v", code, a, err)
		}
	}
	if o := n.asked[0]; o.Codex != "codex" || o.Home != "/h" || o.Thread != "t" || o.Client != 0 {
		t.Errorf("%+v", o)
	}
}

// A daemon that died between the barrier and the server sent nothing: its successor proves it
// by the row of the session. A server that ran proves nothing by being gone.
func TestServerThatNeverBegan(t *testing.T) {
	w := channel.Watch{Proposal: channel.Proposal{Request: "r", Marker: "m", Attachment: "own", Epoch: 2, Asked: channel.Query{Brings: brings()}}}
	for name, row := range map[string]*attachment.Attachment{
		"no row":                nil,
		"of the epoch before":   {ID: "own", Kind: attachment.Owned, State: attachment.Retired, Epoch: 1},
		"ended before it began": {ID: "own", Kind: attachment.Owned, State: attachment.Retired, Epoch: 2},
	} {
		c := turnstart.New(&nobody{row: row}, nil)
		var seen []channel.Sighting
		err := c.Observe(bg, w, func(s channel.Sighting) error { seen = append(seen, s); return nil })
		c.Close()
		if err != nil || len(seen) != 1 || seen[0].Acceptance != thole.Rejected {
			t.Errorf("%s: %+v, %v", name, seen, err)
		}
	}
	foreign := w
	foreign.Asked.Brings = nil
	c := turnstart.New(&nobody{}, nil)
	defer c.Close()
	if err := c.Observe(bg, foreign, func(s channel.Sighting) error { t.Errorf("%+v", s); return nil }); err == nil {
		t.Error("a session that is not there proves nothing of what others sent")
	}
}
