package lab

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
)

func TestInstallerAndLabAgreeOnVersions(t *testing.T) {
	script, err := os.ReadFile("../../../scripts/lab")
	if err != nil {
		t.Fatal(err)
	}
	for _, pin := range []string{
		"CODEX=" + CodexVersion, "CLAUDE=" + ClaudeVersion, "CLAUDE_OLD=" + ClaudeOldVersion,
		"OPENCODE=" + OpencodeVersion, "VERSITYGW=v" + s3Version,
		"ACP_SDK=" + ACPVersion, "ACP_CODEX=" + ACPCodexVersion, "ACPX=" + ACPXVersion,
	} {
		if !strings.Contains(string(script), "\n"+pin+"\n") {
			t.Errorf("scripts/lab does not pin %s", pin)
		}
	}
}

func TestS3KeepsWhatItIsGiven(t *testing.T) {
	a, b := S3(t), S3(t)
	if a.Bucket == b.Bucket {
		t.Fatal("two calls share a bucket")
	}
	client, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	body := []byte("hello")
	if _, err := client.PutObject(t.Context(), a.Bucket, "k", bytes.NewReader(body), int64(len(body)), minio.PutObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	obj, err := client.GetObject(t.Context(), a.Bucket, "k", minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(obj)
	if err != nil || !bytes.Equal(got, body) {
		t.Fatalf("read back %q, %v", got, err)
	}
}

func TestDockerRunsTheBaseImage(t *testing.T) {
	e := Docker(t)
	out, err := exec.Command("docker", "--host", e.Host, "run", "--rm", "--network", "none", e.Image, "bash", "-c", "command -v git && echo ran").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ran") {
		t.Fatalf("run: %v\n%s", err, out)
	}
	if out, err := exec.Command("docker", "--host", e.Host, "run", "--rm", e.Image, "cat", "/proc/net/route").CombinedOutput(); err != nil {
		t.Fatalf("run on the private bridge: %v\n%s", err, out)
	}
}

func TestTmuxOnAPrivateSocket(t *testing.T) {
	path, socket := Tmux(t), filepath.Join(t.TempDir(), "s")
	run := func(args ...string) (string, error) {
		cmd := exec.Command(path, append([]string{"-S", socket, "-f", "/dev/null"}, args...)...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "TERM=xterm", "HOME=" + t.TempDir()}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("new-session", "-d", "-s", "lab", "cat"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	defer func() { _, _ = run("kill-server") }()
	if out, err := run("list-sessions", "-F", "#{session_name}"); err != nil || strings.TrimSpace(out) != "lab" {
		t.Fatalf("sessions %q, %v", out, err)
	}
}

func TestBwrapMakesASandbox(t *testing.T) {
	cmd := exec.Command(Bwrap(t), "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--unshare-pid", "--die-with-parent", "sh", "-c", "ls /tmp | wc -l")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "0" {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestChromiumShowsAPage(t *testing.T) {
	home := t.TempDir()
	page := filepath.Join(home, "page.html")
	if err := os.WriteFile(page, []byte("<p id=x></p><script>x.textContent='drawn '+6*7</script>"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(Chromium(t), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+filepath.Join(home, "profile"), "--dump-dom", "file://"+page)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home}
	out, err := cmd.Output()
	if err != nil || !strings.Contains(string(out), "drawn 42") {
		t.Fatalf("%v: %s", err, out)
	}
}
