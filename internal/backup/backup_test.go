package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/backup"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/thread"
)

var ctx = context.Background()

func put(t *testing.T, home, name, text string) {
	t.Helper()
	path := filepath.Join(home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// newHome is a home with one of each, owned by an open store.
func newHome(t *testing.T) (string, *store.DB) {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(ctx, sqldb.Config{Path: filepath.Join(home, store.FileName)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	sum := sha256.Sum256([]byte("result"))
	if err := db.Update(ctx, "test.rows", func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`insert into workspace_snapshots (id, thread_id, turn_id, executor_id, reason, tree, runtime_version, files, bytes, unsettled, created_at, left_at)
			values ('s', 't', '', '', '', $1, '', 1, 4, 0, 1, 0)`, strings.Repeat("a", 64))
		if err == nil {
			_, err = tx.Exec(`insert into workspace_refs (snapshot_id, object, object_key, size) values ('s', 'o', 'app/x/o', 4)`)
		}
		if err == nil {
			_, err = tx.Exec(`insert into artifacts (artifact_id, job_id, app_id, project_id, user_id, path, manifest, name, content_type, size_bytes, sha256, created_at, held, last_closed_at, pin_until, removed_at, version)
				values ('a', 'j', '', '', '', 'a.data', 'a.json', '', '', 6, $1, 1, $2, 0, 0, 0, 1)`, hex.EncodeToString(sum[:]), false)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	put(t, home, "objects/data/app/x/o", "four")
	put(t, home, "artifacts/a.data", "result")
	put(t, home, "shelves/t.git/HEAD", "ref: refs/heads/main\n")
	put(t, home, "shelves/t.git/objects/aa/bb", "object")
	if err := os.MkdirAll(filepath.Join(home, "shelves/t.git/refs/heads"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, home, "config.toml", "")
	for _, secret := range []string{"vault.key", "vault.key.next", "login-rooms/room/auth.json", "x/executor/auth/token", "backup.tmp/left", "owner.lock"} {
		put(t, home, secret, "PLANTED")
	}
	return home, db
}

func TestRoundTrip(t *testing.T) {
	home, _ := newHome(t)
	file := filepath.Join(t.TempDir(), "copy.tar")
	made, err := backup.Make(ctx, backup.Source{Home: home, Version: "v1"}, file, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil || bytes.Contains(raw, []byte("PLANTED")) {
		t.Errorf("a key or a login is in the copy: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v %v", info, err)
	}
	if _, err := os.Lstat(filepath.Join(home, "backup.tmp")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the gathered files stayed: %v", err)
	}
	to := filepath.Join(t.TempDir(), "deep", "home")
	restored, err := backup.Restore(ctx, file, to)
	if err != nil || restored.Files != made.Files || restored.Counts["artifacts"] != 1 {
		t.Fatalf("restored %+v of %+v: %v", restored, made, err)
	}
	for name, want := range map[string]string{"objects/data/app/x/o": "four", "artifacts/a.data": "result", "shelves/t.git/objects/aa/bb": "object"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if info, err := os.Stat(filepath.Join(to, "shelves/t.git/refs/heads")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("an empty directory of git: %v %v", info, err)
	}
	db, err := store.Open(ctx, sqldb.Config{Path: filepath.Join(to, store.FileName)})
	if err != nil {
		t.Fatal(err)
	}
	_ = db.Close()

	if _, err := backup.Restore(ctx, file, to); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("over a home: %v", err)
	}
	if _, err := backup.Make(ctx, backup.Source{Home: home}, file, time.Now()); thole.CodeOf(err) != thole.CodeConflict {
		t.Errorf("over a file: %v", err)
	}
	if _, err := backup.Make(ctx, backup.Source{Home: t.TempDir()}, file+"2", time.Now()); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("of no home: %v", err)
	}
}

// What was revoked after a copy was made does not come back with it. Nobody knows in another
// place what that was, so no login, token and share link does.
func TestRestoreRevivesNoProof(t *testing.T) {
	home, db := newHome(t)
	threads, err := thread.New(thread.Config{Store: db.Threads()})
	if err == nil {
		_, err = threads.Create(ctx, thole.LocalActor, thread.Create{Owner: thole.DefaultOwner})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(ctx, "test.proofs", func(tx *sqldb.Tx) error {
		for _, q := range []string{
			`insert into login_codes (code_hash, user_id, expires_at) values ('h', $1, 9)`,
			`insert into web_sessions (session_hash, user_id, client, created_at, seen_at, expires_at) values ('h', $1, '', 1, 1, 9)`,
			`insert into api_tokens (token_hash, id, user_id, name, created_at, seen_at, expires_at, scope, parent) values ('h', 'i', $1, 'n', 1, 1, 9, 'read', '')`,
			`insert into share_links (token_hash, id, thread_id, user_id, created_at, seen_at, expires_at) select 'h', 'i', id, $1, 1, 1, 9 from threads`,
			`insert into account_links (link_hash, kind, user_id, created_by, created_at, expires_at) values ('h', 'invite', $1, '', 1, 9)`,
			`insert into device_logins (code_hash, token_hash, name, scope, address, created_at, expires_at) values ('h', 'h', $1, 'act', '', 1, 9)`,
		} {
			if _, err := tx.Exec(q, thole.LocalUser); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	count := func(home, table string) int {
		rows, err := sqldb.Peek(ctx, filepath.Join(home, store.FileName), table, "select 1 from "+table)
		if err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	file, to := filepath.Join(t.TempDir(), "copy.tar"), filepath.Join(t.TempDir(), "home")
	if _, err := backup.Make(ctx, backup.Source{Home: home}, file, time.Now()); err != nil {
		t.Fatal(err)
	}
	restored, err := backup.Restore(ctx, file, to)
	if err != nil || !slices.ContainsFunc(restored.Notes, func(n string) bool { return strings.HasPrefix(n, "6 logins, API tokens and share links") }) {
		t.Errorf("restored: %+v %v", restored, err)
	}
	for table := range store.Schema().Revocable {
		if was, is := count(home, table), count(to, table); was != 1 || is != 0 {
			t.Errorf("%s: %d of %d came back", table, is, was)
		}
	}
	if left, err := filepath.Glob(filepath.Join(to, store.FileName+"?*")); err != nil || len(left) != 0 {
		t.Errorf("next to the store: %v %v", left, err)
	}
}

// What the store names and is not there, or is something else, is no backup.
func TestIncompleteHome(t *testing.T) {
	for name, harm := range map[string]func(home string) error{
		"no object": func(h string) error { return os.Remove(filepath.Join(h, "objects/data/app/x/o")) },
		"short object": func(h string) error {
			return os.WriteFile(filepath.Join(h, "objects/data/app/x/o"), []byte("x"), 0o600)
		},
		"changed artifact": func(h string) error {
			return os.WriteFile(filepath.Join(h, "artifacts/a.data"), []byte("Result"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			home, _ := newHome(t)
			if err := harm(home); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "copy.tar")
			if _, err := backup.Make(ctx, backup.Source{Home: home}, file, time.Now()); err == nil {
				t.Error("it was copied")
			}
			if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A copy that was cut, changed or made to harm leaves no home.
func TestDamagedCopy(t *testing.T) {
	home, _ := newHome(t)
	file := filepath.Join(t.TempDir(), "copy.tar")
	if _, err := backup.Make(ctx, backup.Source{Home: home}, file, time.Now()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	with := func(h tar.Header, body string) []byte {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		h.Size = int64(len(body))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, body)
		_ = w.Flush()
		return append(b.Bytes(), raw...)
	}
	changed := slices.Clone(raw)
	changed[bytes.Index(raw, []byte("result"))] = 'R'
	for name, body := range map[string][]byte{
		"empty": nil, "cut": raw[:len(raw)/2], "changed": changed,
		"outside":  with(tar.Header{Name: "../escape", Typeflag: tar.TypeReg, Mode: 0o600}, "x"),
		"absolute": with(tar.Header{Name: filepath.Join(t.TempDir(), "escape"), Typeflag: tar.TypeReg, Mode: 0o600}, "x"),
		"link":     with(tar.Header{Name: "artifacts/link", Linkname: "/etc", Typeflag: tar.TypeSymlink}, ""),
		"key":      with(tar.Header{Name: "vault.key", Typeflag: tar.TypeReg, Mode: 0o600}, "x"),
		"hook dir": with(tar.Header{Name: "../escape/", Typeflag: tar.TypeDir, Mode: 0o700}, ""),
		"extra":    with(tar.Header{Name: "artifacts/extra", Typeflag: tar.TypeReg, Mode: 0o600}, "x"),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			bad := filepath.Join(dir, "bad.tar")
			if err := os.WriteFile(bad, body, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.Restore(ctx, bad, filepath.Join(dir, "homes", "home")); err == nil {
				t.Error("it was restored")
			}
			if left, _ := os.ReadDir(filepath.Join(dir, "homes")); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A copy whose manifest agrees with what was put into it places nothing where no copy has
// anything, opens the home to nobody and cannot fill the disk.
func TestHostileCopy(t *testing.T) {
	home, _ := newHome(t)
	file := filepath.Join(t.TempDir(), "copy.tar")
	if _, err := backup.Make(ctx, backup.Source{Home: home}, file, time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]tar.Header{
		"way back":       {Name: "artifacts/../vault.key", Typeflag: tar.TypeReg, Mode: 0o600},
		"deep way back":  {Name: "objects/data/../../login-rooms/room/auth.json", Typeflag: tar.TypeReg, Mode: 0o600},
		"open home":      {Name: "./", Typeflag: tar.TypeDir, Mode: 0o777},
		"another room":   {Name: "login-rooms/", Typeflag: tar.TypeDir, Mode: 0o777},
		"hard link":      {Name: "artifacts/link", Linkname: "artifacts/a.data", Typeflag: tar.TypeLink},
		"device":         {Name: "artifacts/null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
		"larger than it": {Name: "artifacts/hole", Typeflag: tar.TypeReg, Mode: 0o600, Size: hole},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			bad := filepath.Join(dir, "bad.tar")
			plant(t, file, bad, h)
			if _, err := backup.Restore(ctx, bad, filepath.Join(dir, "homes", "home")); err == nil || !strings.Contains(err.Error(), "the backup has ") {
				t.Errorf("it was restored, or refused for something else: %v", err)
			}
			if left, _ := os.ReadDir(filepath.Join(dir, "homes")); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// hole is the size of a file that has nothing in it but its size.
const hole = 64 << 20

// hollow is an entry of hole bytes that needs two blocks. The library writes none.
func hollow(t *testing.T, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	entry := func(kind byte, name, body string) {
		var one bytes.Buffer
		w := tar.NewWriter(&one)
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(body)), Format: tar.FormatUSTAR}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, body)
		_ = w.Flush()
		head := one.Bytes()[:512]
		head[156] = kind
		sum := 0
		copy(head[148:156], "        ")
		for _, c := range head {
			sum += int(c)
		}
		copy(head[148:156], fmt.Sprintf("%06o\x00 ", sum))
		b.Write(one.Bytes())
	}
	records := ""
	for _, r := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=" + name, fmt.Sprintf("GNU.sparse.realsize=%d", hole)} {
		records += fmt.Sprintf("%d %s\n", len(r)+4, r) // two digits, a space and the end
	}
	entry('x', "pax", records)
	entry('0', name, "0\n"+strings.Repeat("\x00", 510))
	return b.Bytes()
}

// plant copies a backup with one more entry before its manifest, which names it.
func plant(t *testing.T, from, to string, h tar.Header) {
	t.Helper()
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for r := tar.NewReader(bytes.NewReader(raw)); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		body, readErr := io.ReadAll(r)
		if err = errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		if head.Name == "manifest.json" {
			var m backup.Manifest
			if err := json.Unmarshal(body, &m); err != nil {
				t.Fatal(err)
			}
			if h.Typeflag == tar.TypeReg {
				content := make([]byte, max(1, h.Size))
				if h.Size == hole {
					b.Write(hollow(t, h.Name))
				} else {
					h.Size = 1
					_ = w.WriteHeader(&h)
					_, _ = w.Write(content)
				}
				sum := sha256.Sum256(content)
				m.Files = append(m.Files, backup.File{Path: h.Name, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])})
			} else if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			body, _ = json.Marshal(m)
			head.Size = int64(len(body))
		}
		if err := errors.Join(w.WriteHeader(head), func() error { _, err := w.Write(body); return err }(), w.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), os.WriteFile(to, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}
