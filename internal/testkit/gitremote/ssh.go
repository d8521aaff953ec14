package gitremote

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
)

// SSHD is a server that serves what the user of the test can reach.
type SSHD struct {
	Addr  string // HOST:PORT
	URL   string // the beginning of its addresses, before an absolute path
	Key   string // the file with the private key that it lets in
	Other string // the file with one that it does not
	Known string // the file that names the server's own key
}

// Command is the ssh that logs in.
func (s SSHD) Command() string { return Login(s.Key, s.Known) }

// Login is an ssh with a private key, for servers that a file knows.
func Login(key, known string) string {
	return fmt.Sprintf("ssh -F /dev/null -o IdentitiesOnly=yes -i %s -o UserKnownHostsFile=%s", key, known)
}

// SSH starts a server.
func SSH(t testing.TB) SSHD {
	t.Helper()
	program, dir := lab.SSHD(t), t.TempDir()
	for _, name := range []string{"host", "mine", "other"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // it insists
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(at)
	key, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"config": fmt.Sprintf("ListenAddress 127.0.0.1\nPort %s\nHostKey %[2]s/host\nAuthorizedKeysFile %[2]s/mine.pub\nStrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\n", port, dir),
		"known":  "[127.0.0.1]:" + port + " " + string(key),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	cmd := exec.Command(program, "-D", "-e", "-f", filepath.Join(dir, "config"))
	cmd.Stderr, cmd.SysProcAttr = &said, lab.Leash()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("sshd: %s", said.String())
		}
	})
	poll.Until(t, "sshd", func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return SSHD{Addr: at, URL: "ssh://" + me.Username + "@" + at, Key: filepath.Join(dir, "mine"), Other: filepath.Join(dir, "other"), Known: filepath.Join(dir, "known")}
}
