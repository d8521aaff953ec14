package team

import (
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// sums are the files of a home's store and objects.
func sums(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	out := map[string][32]byte{}
	for _, at := range []string{filepath.Join(dir, "thole.db"), filepath.Join(dir, "objects")} {
		err := filepath.Walk(at, func(path string, info os.FileInfo, err error) error {
			if err != nil || !info.Mode().IsRegular() {
				return err
			}
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			h := sha256.New()
			_, err = io.Copy(h, f)
			out[path] = [32]byte(h.Sum(nil))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestFromALaptopToATeam: a home that was used with `thole up` goes on as a server, with its
// threads and their files, jobs, secrets, share links and tokens.
func TestFromALaptopToATeam(t *testing.T) {
	dsn, bucket := lab.Postgres(t), lab.S3(t)
	h := home.New(t)
	file := configured(t, h.Dir, dsn, &bucket, "", "")
	h.Up()
	thread, _ := run(t, h, 0, "-q", "thread", "start", "--empty", "--profile", "full")
	run(t, h, 0, "thread", "send", thread, "sim: write notes.txt kept")
	job, _ := run(t, h, 0, "-q", "job", "run", "--in-thread", "--thread-id", thread, "--wait", "--", "echo", "from-the-job")
	poll.Until(t, "the job's turn", func() bool { // else it may begin after the move, and take the next message
		out, _ := run(t, h, 0, "thread", "show", thread)
		return strings.Contains(out, "from-the-job")
	})
	run(t, h, 0, "thread", "wait", thread)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("hush"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, h, 0, "secret", "set", "forge", "--file", key)
	run(t, h, 0, "thread", "share", thread)
	token, _ := run(t, h, 0, "token", "create", "ci", "--scope", "read")
	run(t, h, 0, "thread", "close", thread)

	if _, errs := run(t, h, 5, "db", "move", "--config", file); !strings.Contains(errs, "owned by another thole process") {
		t.Errorf("a move while thole is up: %s", errs)
	}
	run(t, h, 0, "daemon", "stop")
	if _, errs := run(t, h, 4, "serve", "--demo", "--config", file); !strings.Contains(errs, "thole db move") {
		t.Errorf("a server on a home that was not moved: %s", errs)
	}
	before := sums(t, h.Dir)
	out, _ := run(t, h, 0, "db", "move", "--config", file)
	for _, want := range []string{"threads", "vault_items", "share_links", "api_tokens", "delivery_", "compared each"} {
		if !strings.Contains(out, want) {
			t.Errorf("the move says nothing of %s:\n%s", want, out)
		}
	}
	after := sums(t, h.Dir)
	if len(after) != len(before) || len(before) < 2 {
		t.Errorf("%d files became %d", len(before), len(after))
	}
	for path, sum := range before {
		if after[path] != sum {
			t.Errorf("%s was changed", path)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(h.Dir, "move-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, errs := run(t, h, 4, "db", "move", "--config", file); !strings.Contains(errs, "moved already") {
		t.Errorf("a second move: %s", errs)
	}
	copied := filepath.Join(t.TempDir(), "copy.tar")
	if _, errs := run(t, h, 7, "backup", copied); !strings.Contains(errs, "pg_dump") {
		t.Errorf("a backup of the store that was left: %s", errs)
	}
	other := home.New(t)
	other.Up()
	run(t, other, 0, "daemon", "stop")
	if _, errs := run(t, other, 4, "db", "move", "--config", file); !strings.Contains(errs, "not empty") {
		t.Errorf("a second home into the same database: %s", errs)
	}

	// The objects come from S3 now.
	if err := os.Rename(filepath.Join(h.Dir, "objects"), filepath.Join(h.Dir, "objects-before")); err != nil {
		t.Fatal(err)
	}
	s := serve(t, h) // with the file that it was moved with
	if out, _ := run(t, h, 0, "thread", "send", thread, "sim: run cat notes.txt"); !strings.Contains(out, "| kept") {
		t.Errorf("the thread: %s", out)
	}
	if out, _ := run(t, h, 0, "job", "query", strings.Fields(job)[0]); !strings.Contains(out, thread) {
		t.Errorf("the job: %s", out)
	}
	run(t, h, 0, "secret", "test", "forge")
	if out, _ := run(t, h, 0, "thread", "share", "list"); !strings.Contains(out, thread[:8]) {
		t.Errorf("share links: %s", out)
	}
	if got := s.with(token, "/sessions"); got != 200 {
		t.Errorf("a token of before: %d", got)
	}
	if out, _ := run(t, h, 0, "check"); !strings.Contains(out, "all rules hold") {
		t.Errorf("check: %s", out)
	}
	s.stop()
}
