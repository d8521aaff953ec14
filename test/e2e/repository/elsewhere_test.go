package repository

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/gitremote"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// pointer is what LFS commits instead of a file.
const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865\nsize 2\n"

// content is what it points to.
const content = "1\n"

// parted makes a repository with a submodule and with files that LFS keeps, as a user has it
// who fetched both. A filter of its own stands in for LFS.
func (r *rig) parted(repo string) {
	r.Helper()
	sub := filepath.Join(filepath.Dir(repo), "sub")
	r.write(filepath.Join(sub, "inside"), "of the submodule\n")
	r.commit(sub)
	r.npmPackage(repo)
	filter := filepath.Join(filepath.Dir(repo), "pointer")
	r.write(filter, pointer)
	r.git(repo, "config", "filter.lfs.clean", "cat "+filter)
	r.git(repo, "config", "filter.lfs.smudge", "echo 1")
	r.write(filepath.Join(repo, ".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n")
	r.write(filepath.Join(repo, "big.bin"), content)
	r.git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "lib")
	r.git(repo, "add", "-A")
	r.git(repo, "commit", "-q", "-m", "with parts elsewhere")
	if got := r.git(repo, "show", "HEAD:big.bin"); got != pointer {
		r.Fatalf("committed was %q", got)
	}
}

// What a commit only refers to is not there for an agent, and thole run says so; it stays
// what it is on both sides, also where the agent writes into it.
func TestPartsElsewhere(t *testing.T) {
	r := newRig(t)
	for _, agent := range []string{"codex", "claude", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			r, repo := r.of(t), filepath.Join(lab.Open(t), "repo")
			r.parted(repo)
			thread, out := r.run(repo, agent+"/default", "sim: write made new\\n ;; run echo more >> README.md; ls -A lib | wc -l; git status --short; git submodule status; cat big.bin ;; say saw %tool%")
			for _, want := range []string{"submodules are empty there: lib (git submodule update --init", "Git LFS content is not there, files are pointers: *.bin", "0\n M README.md\n?? made\n-", "size 2"} {
				if !strings.Contains(strings.ReplaceAll(out, "| ", ""), want) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
			if left, err := os.ReadDir(filepath.Join(r.files(thread), "lib")); err != nil || len(left) != 0 {
				t.Errorf("the submodule has %v, %v", left, err)
			}
			if got := text(filepath.Join(r.files(thread), "big.bin")); got != pointer {
				t.Errorf("the agent's file is %q", got)
			}
			if got := r.thole(repo, "thread", "diff", thread, "--name-only"); got != "README.md\nmade\n" {
				t.Errorf("changed are %q", got)
			}
			r.thole(repo, "thread", "apply", thread)
			r.whole(repo, " M README.md\n?? made\n")
			r.git(repo, "checkout", "-q", "README.md")
			if err := os.Remove(filepath.Join(repo, "made")); err != nil {
				t.Fatal(err)
			}
			r.thole(repo, "thread", "merge", thread)
			r.whole(repo, "")

			// It writes where the submodule would be, and over a pointer.
			r.thole(repo, "thread", "send", thread, "sim: run echo x > lib/x; echo 2 > big.bin ;; say wrote")
			const left = "lib: a submodule that was not fetched"
			if diff, errs, _ := r.in(repo, "thread", "diff", thread, "--name-only"); diff != "README.md\nbig.bin\nmade\n" || !strings.Contains(errs, left) {
				t.Errorf("changed are %q, and %s", diff, errs)
			}
			if _, errs, code := r.in(repo, "thread", "apply", thread); code != 0 || !strings.Contains(errs, left) {
				t.Errorf("applied with exit %d: %s", code, errs)
			}
			if inside, big := r.git(filepath.Join(repo, "lib"), "status", "--short")+text(filepath.Join(repo, "lib", "inside")), text(filepath.Join(repo, "big.bin")); inside != "of the submodule\n" || big != "2\n" {
				t.Errorf("the user has %q and %q", inside, big)
			}
		})
	}
}

// whole looks at what a user has: the content of submodule and LFS, and what git says
// changed.
func (r *rig) whole(repo, status string) {
	r.Helper()
	if inside, big := text(filepath.Join(repo, "lib", "inside")), text(filepath.Join(repo, "big.bin")); inside != "of the submodule\n" || big != content {
		r.Errorf("the user has %q and %q", inside, big)
	}
	if got := r.git(repo, "status", "--short"); got != status {
		r.Errorf("git says %q, want %q", got, status)
	}
	if got := r.git(repo, "show", "HEAD:big.bin"); got != pointer {
		r.Errorf("committed is %q", got)
	}
	r.git(repo, "fsck", "--strict")
}

// A repository that is fetched says the same.
func TestPartsElsewhereOfAURL(t *testing.T) {
	r := newRig(t)
	open := lab.Open(t)
	repo := filepath.Join(open, "repo")
	r.parted(repo)
	r.git(open, "clone", "-q", "--bare", repo, "far.git")
	url := gitremote.HTTP(t, open)
	r.write(filepath.Join(r.Dir, ".gitconfig"), "[http \""+url+"\"]\n\textraHeader = Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte(gitremote.User+":"+gitremote.Password))+"\n")
	thread, out := r.run(open, "test/script", "--repo", url+"/far.git", "sim: run ls -A lib | wc -l; cat big.bin; echo more >> README.md ;; say saw %tool%")
	for _, want := range []string{"on branch thole/", " of " + url + "/far.git at ", "submodules are empty there: lib (", "files are pointers: *.bin\n", "saw 0\nversion https://git-lfs"} {
		if !strings.Contains(strings.ReplaceAll(out, "| ", ""), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	r.thole(repo, "thread", "apply", thread, "--to", repo)
	r.whole(repo, " M README.md\n")
}
