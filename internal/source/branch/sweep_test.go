package branch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/source/branch"
)

func heldRefs(t *testing.T, repo string) string { return host(t, repo, "for-each-ref", "refs/thole") }

func (r *rig) sweep() {
	r.t.Helper()
	if err := r.b.Sweep(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// kept lists what the home has of repositories.
func (r *rig) kept() (names []string) {
	r.t.Helper()
	for _, dir := range []string{"", "held", "carried"} {
		entries, _ := os.ReadDir(filepath.Join(r.home, branch.Mirrors, dir))
		for _, e := range entries {
			if e.Name() != "held" && e.Name() != "carried" {
				names = append(names, filepath.Join(dir, e.Name()))
			}
		}
	}
	return names
}

func TestWhatNoThreadNeedsIsLetGo(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	write(t, filepath.Join(repo, "README.md"), "dirty\n", 0o644)
	_, kept := r.must(source.Request{Repo: repo, Ref: "HEAD~1"})
	dead, _ := r.must(source.Request{Repo: repo, Dirty: true})
	_, mirrored := r.must(source.Request{Repo: "file://" + repo})
	r.alive = []thole.Source{kept, mirrored}
	r.sweep()
	if !strings.Contains(heldRefs(t, repo), string(dead)) {
		t.Error("the source of a thread that may come was let go of")
	}
	r.now = r.now.Add(2 * time.Hour)
	fork := kept // it is the fork's too
	r.alive = []thole.Source{fork, mirrored}
	r.sweep()
	if got := heldRefs(t, repo); strings.Contains(got, string(dead)) || strings.Count(got, "\n") != 1 {
		t.Errorf("held: %q", got)
	}
	if got := strings.Join(r.kept(), " "); strings.Contains(got, "carried/") || strings.Count(got, "held/") != 2 {
		t.Errorf("kept: %s", got)
	}
	r.now = r.now.Add(30 * 24 * time.Hour)
	r.sweep()
	if _, err := os.Stat(mirrored.Objects[0]); err != nil {
		t.Errorf("a mirror that a thread needs: %v", err)
	}
	// A repository that is gone keeps nothing from going.
	if err := os.RemoveAll(repo); err != nil {
		t.Fatal(err)
	}
	r.alive = nil
	r.sweep()
	if got := r.kept(); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

// A mirror that is fetched often keeps few packs, all objects, and nothing that broke off.
func TestMirrorsStaySmall(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	_, s := r.must(source.Request{Repo: "file://" + repo})
	r.alive = []thole.Source{s}
	mirror := filepath.Dir(s.Objects[0])
	for i := range 22 { // as so many fetches leave them
		write(t, filepath.Join(r.user, "blob"), strings.Repeat("x", i), 0o644)
		id := line(host(t, mirror, "hash-object", "-w", filepath.Join(r.user, "blob")))
		if out, err := r.cfg.Git.RunOwn(t.Context(), git.Cmd{Dir: mirror, Args: []string{"pack-objects", "-q", "objects/pack/pack"}, Stdin: strings.NewReader(id + "\n")}); err != nil {
			t.Fatalf("%s %v", out, err)
		}
	}
	host(t, mirror, "prune-packed", "-q")
	write(t, filepath.Join(s.Objects[0], "pack/tmp_pack_x"), "half", 0o644)
	before := objectCount(t, mirror)
	r.sweep()
	packs, _ := filepath.Glob(filepath.Join(s.Objects[0], "pack/*"))
	if len(packs) > 4 {
		t.Errorf("packs %v", packs)
	}
	if after := objectCount(t, mirror); after != before {
		t.Errorf("%d objects, before %d", after, before)
	}
	clean(r, source.Request{Repo: "file://" + repo}, repo)
}

func objectCount(t *testing.T, repo string) int {
	return strings.Count(host(t, repo, "cat-file", "--batch-all-objects", "--batch-check"), "\n")
}

// What cannot be let go of now is not forgotten.
func TestAFailedSweepIsRepeated(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	r.must(source.Request{Repo: repo})
	r.now = r.now.Add(2 * time.Hour)
	lock := filepath.Join(repo, ".git/packed-refs.lock")
	write(t, lock, "", 0o644)
	if err := r.b.Sweep(t.Context()); err == nil {
		t.Error("a locked repository was let go of")
	}
	if len(r.kept()) != 1 || heldRefs(t, repo) == "" {
		t.Errorf("kept %v, held %q", r.kept(), heldRefs(t, repo))
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	r.sweep()
	if len(r.kept()) != 0 || heldRefs(t, repo) != "" {
		t.Errorf("kept %v, held %q", r.kept(), heldRefs(t, repo))
	}
}

// A crash after any durable step leaves what a sweep finds, and the same request works
// afterwards.
func TestACrashAtEachStepForgetsNothing(t *testing.T) {
	crash := errors.New("crash")
	for _, step := range []string{"branch.record", "branch.hold", "branch.carry", "branch.release"} {
		t.Run(step, func(t *testing.T) {
			r, repo := newRig(t), newRepo(t)
			write(t, filepath.Join(repo, "README.md"), "dirty\n", 0o644)
			dying, reached := r.cfg, false
			dying.Step = func(s string) error {
				if s == step || reached { // a crash lets nothing more happen
					reached = true
					return crash
				}
				return nil
			}
			r.b = branch.New(dying)
			id := newThread()
			_, err := r.resolve(id, source.Request{Repo: repo, Dirty: true})
			if step == "branch.release" && err == nil {
				r.now = r.now.Add(2 * time.Hour)
				err = r.b.Sweep(t.Context())
			}
			if !errors.Is(err, crash) || !reached {
				t.Fatalf("no crash: %v", err)
			}
			r.b = branch.New(r.cfg)
			if len(r.kept()) == 0 {
				t.Fatal("nothing says what was held")
			}
			s, err := r.resolve(id, source.Request{Repo: repo, Dirty: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.inside(r.lay(id, s), s, "status", "--porcelain"); got != " M README.md\n" {
				t.Errorf("status: %q", got)
			}
			r.now = r.now.Add(2 * time.Hour)
			r.sweep()
			if len(r.kept()) != 0 || heldRefs(t, repo) != "" {
				t.Errorf("left %v, %q", r.kept(), heldRefs(t, repo))
			}
		})
	}
}

// A checkout that broke off is made again, whatever it left.
func TestALayThatBrokeOffStartsOver(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	write(t, filepath.Join(repo, "new"), "new\n", 0o644)
	id, s := r.must(source.Request{Repo: repo, Dirty: true})
	dir := r.lay(id, s)
	for _, err := range []error{
		os.Remove(filepath.Join(dir, "README.md")), os.WriteFile(filepath.Join(dir, "run.sh"), []byte("ha"), 0o600), os.WriteFile(filepath.Join(dir, ".git/index.lock"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, ".git/HEAD"), []byte("ref: ref"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := r.b.Lay(t.Context(), id, s, dir); err != nil {
		t.Fatal(err)
	}
	equalTrees(t, dir, repo)
	if got := r.inside(dir, s, "status", "--porcelain"); got != "?? new\n" {
		t.Errorf("status: %q", got)
	}
	// A fork that has no files yet is laid from the same.
	if err := r.b.Lay(t.Context(), newThread(), s, r.workspace()); err != nil {
		t.Errorf("a fork: %v", err)
	}
	other := s
	other.Commit = strings.Repeat("0", 40)
	if err := r.b.Lay(t.Context(), newThread(), other, r.workspace()); thole.CodeOf(err) != thole.CodeGone {
		t.Errorf("what nobody recorded: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(repo, ".git")); err != nil {
		t.Fatal(err)
	}
	if err := r.b.Lay(t.Context(), id, s, r.workspace()); thole.CodeOf(err) != thole.CodeGone || !strings.Contains(err.Error(), repo) || thole.HintOf(err) == "" {
		t.Errorf("without the repository: %v", err)
	}
}

// Two threads on one repository at once, and the same mirror.
func TestThreadsStartSideBySide(t *testing.T) {
	r, repo := newRig(t), newRepo(t)
	done := make(chan error)
	for range 4 {
		for _, q := range []source.Request{{Repo: repo}, {Repo: "file://" + repo}} {
			go func() {
				_, err := r.resolve(newThread(), q)
				done <- err
			}()
		}
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := strings.Count(heldRefs(t, repo), "\n"); got != 4 {
		t.Errorf("%d are held", got)
	}
}
