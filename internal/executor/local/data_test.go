package local_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// aged makes the executor one of an earlier version, which had conversations in the
// workspace, with files of its agent's user.
func (b *bench) aged(prepare func(at string)) {
	b.Helper()
	at := filepath.Join(b.root, string(b.id))
	if err := os.Remove(filepath.Join(at, "data")); err != nil {
		b.Fatal(err)
	}
	prepare(at)
}

// Conversations are no part of the workspace: neither git status nor git clean meets them,
// and programs find them in the home.
func TestConversationsAreNotInTheWorkspace(t *testing.T) {
	each(t, func(t *testing.T, bwrap string) {
		_, err := exec.LookPath("git")
		lab.Need(t, "git", err)
		b := setup(t, bwrap)
		info := b.start()
		data := "~/.agent_data"
		if bwrap == "" {
			data = filepath.Join(b.root, string(b.id), "data")
		}
		got := b.run(info, "sim: run git init -q . && git status --porcelain --ignored && echo talk > "+data+"/test/talk && git clean -fdxq && git add -A && git status --porcelain && cat "+data+"/test/talk && ls -a")
		if got != "talk\n.\n..\n.git\n" {
			t.Errorf("the agent sees %q", got)
		}
		if text, err := os.ReadFile(filepath.Join(b.root, string(b.id), "data/test/talk")); err != nil || string(text) != "talk\n" {
			t.Errorf("%q, %v", text, err)
		}
		if dir, err := b.driver.DataDir(b.id); err != nil || dir != filepath.Join(b.root, string(b.id), "data") {
			t.Errorf("%q, %v", dir, err)
		}
	})
}

// An executor of an earlier version has its conversations moved out of the workspace when
// it starts. Until then they are where they were.
func TestConversationsAreMovedOutOfTheWorkspace(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		each(t, func(t *testing.T, bwrap string) {
			b := setup(t, bwrap)
			at := filepath.Join(b.root, string(b.id))
			do := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			home, inside := "/home/agent/.agent_data", ""
			if bwrap == "" {
				home, inside = at+"/data", at
			}
			b.aged(func(at string) {
				do(os.MkdirAll(filepath.Join(at, "workspace/.agent_data/test"), 0o700))
				do(os.WriteFile(filepath.Join(at, "workspace/.agent_data/test/talk"), []byte("talk\n"), 0o600))
				do(os.WriteFile(filepath.Join(at, "workspace/kept"), []byte("kept\n"), 0o600))
				do(os.Link(filepath.Join(at, "workspace/kept"), filepath.Join(at, "workspace/.agent_data/test/second")))
				do(os.WriteFile(filepath.Join(at, "workspace/.agent_data/test/.thole-parted"), []byte("ke"), 0o600)) // by a start that was killed
				do(os.Symlink("/etc/passwd", filepath.Join(at, "workspace/.agent_data/test/link")))
				do(os.Chmod(filepath.Join(at, "workspace/.agent_data"), 0))
				do(os.Symlink("/etc", filepath.Join(at, "home/.agent_data")))
				do(os.Symlink(inside+"/workspace/.agent_data/codex", filepath.Join(at, "home/.codex")))
				do(os.Symlink("/etc", filepath.Join(at, "home/.claude")))
			})
			if dir, err := b.driver.DataDir(b.id); err != nil || dir != "" {
				t.Errorf("conversations are said to be at %q, %v", dir, err)
			}
			info := b.start()
			if got := b.run(info, "sim: run ls -a; cd "+home+"/test && cat talk && echo more >> talk && echo bad > second && readlink link ~/.codex ~/.claude"); got != ".\n..\nkept\ntalk\n/etc/passwd\n"+home+"/codex\n/etc\n" {
				t.Errorf("the agent sees %q", got)
			}
			for path, want := range map[string]string{"data/test/talk": "talk\nmore\n", "data/test/second": "bad\n", "workspace/kept": "kept\n"} {
				if text, err := os.ReadFile(filepath.Join(at, path)); err != nil || string(text) != want {
					t.Errorf("%s is %q, %v", path, text, err)
				}
			}
			if _, err := os.Lstat(filepath.Join(at, "data/test/.thole-parted")); !os.IsNotExist(err) {
				t.Errorf("half a file is left: %v", err)
			}
			// A name that the agent gives to something of its own stays its own.
			b.run(info, "sim: run mkdir .agent_data && echo mine > .agent_data/mine")
			do(b.driver.Stop(t.Context(), b.id))
			if got := b.run(b.start(), "sim: run cat .agent_data/mine; cat "+home+"/test/talk"); got != "mine\ntalk\nmore\n" {
				t.Errorf("after the next start the agent sees %q", got)
			}
		})
	})
}

// What an agent of an earlier version put in the place of its conversations is its own
// now, and nothing follows it.
func TestWhatIsNoDirectoryOfConversations(t *testing.T) {
	for what, put := range map[string]func(path, victim string) error{
		"link": func(path, victim string) error { return os.Symlink(victim, path) },
		"pipe": func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"none": func(string, string) error { return nil },
	} {
		t.Run(what, func(t *testing.T) {
			b := setup(t, lab.Bwrap(t))
			victim := t.TempDir()
			b.aged(func(at string) {
				if err := put(filepath.Join(at, "workspace/.agent_data"), victim); err != nil {
					t.Fatal(err)
				}
			})
			if got := b.run(b.start(), "sim: run echo talk > ~/.agent_data/test/talk; test -e .agent_data/test || echo apart"); !strings.HasSuffix(got, "apart\n") {
				t.Errorf("the agent sees %q", got)
			}
			if list, err := os.ReadDir(victim); err != nil || len(list) != 0 {
				t.Errorf("outside there is %v, %v", list, err)
			}
		})
	}
}

// No file has a name both in the workspace and among the conversations, and an agent
// exchanges neither place.
func TestThePlacesAreMountsOfTheirOwn(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		b := setup(t, lab.Bwrap(t))
		got := b.attack(b.start(), `echo x > kept
ln kept ~/.agent_data/second 2>&1 | grep -c 'cross-device'
mv ~/.agent_data ~/other 2>&1 | grep -c 'busy'
rmdir ~/.agent_data 2>&1 | grep -c 'busy'
mkdir ~/new && mv ~/new ~/.agent_data.new && test -d ~/.agent_data && echo there`)
		if got != "1\n1\n1\nthere\n" {
			t.Errorf("the agent did %q", got)
		}
	})
}
