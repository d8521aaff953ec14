package turnstart

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
)

// records are where a Codex home keeps the records of its threads, one file each whose
// name holds the thread's id.
var records = []string{"sessions", "archived_sessions"}

// Knows implements channel.Knower as far as it can be known: a thread that a session of
// ours holds exists, and so does one that Codex has a record of. One without either does not,
// unless the records cannot be read; a thread before its first turn has none, and gets nothing yet.
func (c *Channel) Knows(ctx context.Context, q channel.Query) error {
	if !thole.ValidUUID(string(q.Thread)) {
		return thole.Errorf(thole.CodeInvalid, "invalid thread id %q of a Codex thread", q.Thread).
			WithHint("it is a UUID: thole codex sessions list shows the threads of sessions; for a thread of thole's own use --target thole")
	}
	_, err := c.Sessions.Of(ctx, q.User, q.Endpoint, q.Thread)
	if thole.CodeOf(err) != thole.CodeNotFound {
		return err
	}
	read := true
	for _, dir := range records {
		found, ok := recorded(ctx, filepath.Join(q.Endpoint, dir), string(q.Thread))
		if found {
			return nil
		}
		read = read && ok
	}
	if !read {
		return nil
	}
	return thole.Errorf(thole.CodeNotFound, "codex has no record of thread %s in %s, and no session of thole holds it", q.Thread, q.Endpoint).
		WithHint("thole codex sessions list shows the threads of sessions, codex resume those of %s; for a thread of thole's own use --target thole", q.Endpoint)
}

// recorded looks for a file with the id in its name. ok says that all could be looked at; of
// a directory that is not there nothing is left to look at.
func recorded(ctx context.Context, dir, id string) (found, ok bool) {
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case !e.IsDir() && id != "" && strings.Contains(e.Name(), id):
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found, err == nil || errors.Is(err, fs.ErrNotExist)
}
