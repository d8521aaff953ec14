package turnstart

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/channel"
)

const held = "01a1dd87-43ed-7176-ad96-000000000001"

// nobody holds no thread but one.
type nobody struct{ Sessions }

func (nobody) Of(_ context.Context, _ thole.UserID, _ string, id thole.ThreadID) (attachment.Attachment, error) {
	if id == held {
		return attachment.Attachment{Thread: id}, nil
	}
	return attachment.Attachment{}, thole.Errorf(thole.CodeNotFound, "none")
}

// A Codex thread is refused only with proof: its home's records can be read, and none is
// of it.
func TestKnowsThreadsByTheirRecords(t *testing.T) {
	c, home, id := &Channel{Sessions: nobody{}}, t.TempDir(), "01a1dd87-43ed-7176-ad96-f0dfb0acb3e3"
	knows := func(id thole.ThreadID) thole.Code {
		return thole.CodeOf(c.Knows(t.Context(), channel.Query{User: thole.LocalUser, Endpoint: home, Thread: id}))
	}
	if got := knows(thole.ThreadID(id)); got != thole.CodeNotFound {
		t.Errorf("a home without records is %q", got)
	}
	if err := os.WriteFile(filepath.Join(home, "sessions"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := knows("01a1dd87-43ed-7176-ad96-000000000002"); got != thole.CodeNotFound {
		t.Errorf("a thread of a home whose records are a file is %q", got)
	}
	if err := os.Remove(filepath.Join(home, "sessions")); err != nil {
		t.Fatal(err)
	}
	day := filepath.Join(home, "sessions", "2026", "11", "16")
	if err := os.MkdirAll(day, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := knows(thole.ThreadID(id)); got != thole.CodeNotFound {
		t.Errorf("a thread without a record is %q", got)
	}
	if err := os.WriteFile(filepath.Join(day, "rollout-2026-11-16T10-00-00-"+id+".jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[thole.ThreadID]thole.Code{thole.ThreadID(id): "", held: "", "01a1dd87-43ed-7176-ad96-000000000003": thole.CodeNotFound, "another": thole.CodeInvalid, "": thole.CodeInvalid} {
		if got := knows(id); got != want {
			t.Errorf("thread %q is %q, want %q", id, got, want)
		}
	}
}
