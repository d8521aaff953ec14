package workspace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/objects/dir"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/manager"
	"github.com/tholehq/thole/internal/workspace/side"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a manager with a real store and a directory of objects with a real
// HTTP server.
type rig struct {
	t       testing.TB
	db      *store.DB
	objects *dir.Store
	manager *manager.Manager
	client  *http.Client
}

func newRig(t testing.TB, change ...func(*manager.Config)) *rig {
	t.Helper()
	db, err := storetest.OpenAt(context.Background(), sqldb.Config{Path: filepath.Join(t.TempDir(), "db")})
	if err != nil {
		t.Fatal(err)
	}
	var handler http.Handler
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	objs, err := dir.Open(t.TempDir(), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	handler = objs.Handler()
	r := &rig{t: t, db: db, objects: objs, client: &http.Client{Transport: &http.Transport{}}}
	cfg := manager.Config{Rows: db.Workspaces(), Objects: objs, Client: r.client}
	for _, c := range change {
		c(&cfg)
	}
	r.manager = manager.New(cfg)
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		srv.Close()
		objs.Close()
		db.Close()
	})
	return r
}

// box is an executor's directories with the far side of the handler.
type box struct {
	dir, data, home, state string
	target                 manager.Target
	local                  *side.Local
}

func (r *rig) box(thread thole.ThreadID) *box {
	r.t.Helper()
	root := r.t.TempDir()
	b := &box{dir: filepath.Join(root, "workspace"), data: filepath.Join(root, "data"), home: filepath.Join(root, "home"), state: filepath.Join(root, "state")}
	for _, d := range []string{b.dir, b.data, b.home, b.state} {
		if err := os.Mkdir(d, 0o700); err != nil {
			r.t.Fatal(err)
		}
	}
	b.local = side.New(side.Config{Dir: b.dir, Data: b.data, Home: b.home, State: b.state, Client: r.client})
	b.target = manager.Target{
		Thread: thread, Owner: thole.DefaultOwner, Executor: thole.NewID[thole.ExecutorID](time.Now()), Side: workspace.Remote(&wire{side.Handler(b.local)}),
	}
	return b
}

// stopped is the target as it is when its executor does not run.
func (b *box) stopped() manager.Target {
	t := b.target
	t.Side, t.Dir, t.Data = nil, b.dir, b.data
	return t
}

// at is where a path of the tree is.
func (b *box) at(path string) string {
	if rest, ok := strings.CutPrefix(path+"/", workspace.AgentData+"/"); ok && b.data != "" {
		return filepath.Join(b.data, rest)
	}
	return filepath.Join(b.dir, path)
}

// old makes it an executor of an earlier version, which has conversations in the
// workspace.
func (b *box) old(r *rig) {
	b.data = ""
	b.local = side.New(side.Config{Dir: b.dir, Home: b.home, State: b.state, Client: r.client})
	b.target.Side = workspace.Remote(&wire{side.Handler(b.local)})
}

// wire calls a handler as executord's client does, without a socket.
type wire struct{ h http.Handler }

func (w *wire) Post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, httptest.NewRequest("POST", path, bytes.NewReader(body)).WithContext(ctx))
	if rec.Code != http.StatusOK {
		var p struct {
			Code    thole.Code
			Message string
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil {
			return err
		}
		return &thole.Error{Code: p.Code, Message: p.Message}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(rec.Body.Bytes(), out)
}

func (r *rig) restore(b *box) {
	r.t.Helper()
	if err := r.manager.Restore(context.Background(), b.target); err != nil {
		r.t.Fatal(err)
	}
	if err := r.manager.Link(context.Background(), b.target); err != nil {
		r.t.Fatal(err)
	}
	if err := r.manager.Validate(context.Background(), b.target); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) sync(b *box) workspace.SnapshotID {
	r.t.Helper()
	id, err := r.manager.Sync(context.Background(), b.target, "test")
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func newThread() thole.ThreadID { return thole.NewID[thole.ThreadID](time.Now()) }

// put writes a file whose times are old, as those of a file that rests are.
func (b *box) put(t testing.TB, path, content string) {
	t.Helper()
	full := b.at(path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// listing describes a tree: kinds, modes, sizes, contents and link texts, read by
// other means than the code under test.
func listing(t testing.TB, dir string, skip ...string) string {
	t.Helper()
	var lines []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		for _, s := range skip {
			if rel == s {
				if info.IsDir() {
					return filepath.SkipDir
				}
				return nil
			}
		}
		if rel == "." {
			return nil
		}
		line := fmt.Sprintf("%q %s", rel, info.Mode())
		switch {
		case info.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" -> %q", to)
		case info.Mode().IsRegular():
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			data, err := io.ReadAll(f)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %d %s", info.Size(), objects.SumOf(data))
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// forkHead lets a thread begin where another is, as a fork of the thread does.
func forkHead(db *store.DB, from, to thole.ThreadID) error {
	return db.Update(context.Background(), "test.fork", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`insert into workspace_heads (thread_id, snapshot_id, updated_at)
			select $2, snapshot_id, updated_at from workspace_heads where thread_id = $1`, from, to)
		return err
	})
}
