package workspace_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// What an export to a prefix of the object store holds runs nothing either, where a
// tool copies it to; and none of it can be taken for an object of a snapshot.
func TestAnExportToAPrefixRunsNothing(t *testing.T) {
	git := lab.Git(t)
	marker := filepath.Join(t.TempDir(), "ran")
	r := newRig(t)
	thread := newThread()
	b := r.box(thread)
	in := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	in(b.dir, "init", "-q")
	b.put(t, "file", "text\n")
	in(b.dir, "add", "file")
	in(b.dir, "commit", "-q", "-m", "one")
	config, err := os.ReadFile(filepath.Join(b.dir, ".git/config"))
	if err != nil {
		t.Fatal(err)
	}
	b.put(t, ".git/config", string(config)+"[core]\n\tfsmonitor = \"touch "+marker+"; true\"\n")
	reserved := "session/x/workspace/snapshots/" + string(newThread()) + "/object"
	b.put(t, reserved, "text")
	snap := r.sync(b)
	for _, raw := range []bool{true, false} {
		prefix := map[bool]string{true: "app/raw", false: "app/out"}[raw]
		x, err := r.manager.Export(t.Context(), snap, prefix, raw)
		if err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		list, err := r.objects.List(t.Context(), prefix+"/", "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			body, err := r.objects.Get(t.Context(), o.Key, 0, -1)
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(body)
			body.Close()
			path := filepath.Join(to, strings.TrimPrefix(o.Key, prefix))
			if err == nil {
				err = os.MkdirAll(filepath.Dir(path), 0o700)
			}
			if err == nil {
				err = os.WriteFile(path, data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(o.Key, reserved) {
				t.Errorf("raw %v: %s would be collected", raw, o.Key)
			}
		}
		in(to, "status")
		_, err = os.Stat(marker)
		if ran := err == nil; ran != raw {
			t.Errorf("raw %v: the agent's command ran: %v", raw, ran)
		}
		_ = os.Remove(marker)
		if said := strings.Join(x.Stripped, "\n"); strings.Contains(said, "core.fsmonitor") == raw || strings.Join(x.Skipped, "\n") != reserved {
			t.Errorf("raw %v: stripped %q, left out %q", raw, said, x.Skipped)
		}
	}
}
