package local_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// stranger owns a directory in which root's agents work.
const stranger = 4242

// owned is a directory of a person: for root, of another one.
func owned(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(lab.Open(t))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (b *bench) give(dir string) {
	b.Helper()
	if os.Getuid() != 0 {
		return
	}
	if err := filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(at, stranger, stranger)
	}); err != nil {
		b.Fatal(err)
	}
}

// here makes an executor whose agents work in a directory.
func here(t *testing.T, bwrap, dir string) *bench {
	t.Helper()
	b := setup(t, bwrap)
	b.give(dir)
	b.refile(dir)
	return b
}

// workshop makes one whose agents work in a project, which has neighbours.
func workshop(t *testing.T) (b *bench, top, dir string) {
	t.Helper()
	b, top = setup(t, lab.Bwrap(t)), owned(t)
	dir = b.project(top)
	b.give(top)
	b.refile(dir)
	return b, top, dir
}

// git runs it on the host, as the person whose files they are.
func (b *bench) git(dir string, args ...string) string {
	b.Helper()
	cmd := exec.Command(lab.Git(b.T), append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=p", "-c", "user.email=p@p"}, args...)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	if fi, err := os.Stat(dir); err == nil && os.Getuid() == 0 {
		st := fi.Sys().(*syscall.Stat_t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: st.Uid, Gid: st.Gid}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.Fatalf("git %v in %s: %v %s", args, dir, err, out)
	}
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// project is a repository with a submodule, a linked work tree and a nested repository.
func (b *bench) project(top string) string {
	b.Helper()
	dir, lib := filepath.Join(top, "project"), filepath.Join(top, "lib")
	for _, repo := range []string{lib, dir, filepath.Join(dir, "vendor", "dep")} {
		if err := os.MkdirAll(repo, 0o755); err != nil {
			b.Fatal(err)
		}
		b.git(repo, "init", "-q", "-b", "main")
		write(b.T, filepath.Join(repo, "file"), "one\n")
		b.git(repo, "add", "file")
		b.git(repo, "commit", "-q", "-m", "one")
	}
	write(b.T, filepath.Join(dir, ".gitignore"), "vendor\n.shared\n")
	write(b.T, filepath.Join(dir, ".shared"), "")
	b.git(dir, "submodule", "--quiet", "add", lib, "sub")
	b.git(dir, "add", ".gitignore")
	b.git(dir, "commit", "-q", "-m", "two")
	b.git(dir, "worktree", "add", "-q", filepath.Join(top, "linked"))
	b.git(dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.TrimSpace(b.git(lib, "rev-parse", "HEAD"))+",none") // one that is not there
	b.git(dir, "commit", "-q", "-m", "two")
	if err := os.Mkdir(filepath.Join(dir, "none"), 0o755); err != nil {
		b.Fatal(err)
	}
	b.git(dir, "config", "user.name", "p")
	b.git(dir, "config", "user.email", "p@p")
	for config, more := range map[string]string{".git": "[include]\n\tpath = ../.shared ; team\n", ".git/modules/sub": "[core]\n\thooksPath = .githooks # team\n", "vendor/dep/.git": "[core]\n\thooksPath = .git\\\nhooks\n"} {
		f, err := os.OpenFile(filepath.Join(dir, config, "config"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.WriteString(more); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}
