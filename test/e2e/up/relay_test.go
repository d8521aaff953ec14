package up

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/modelsim"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
)

// begin starts a command that serves and returns the first line that has what is wanted.
func begin(t *testing.T, cmd *exec.Cmd, wanted string) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	rest := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-rest
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", cmd.Args[1], err, errs.String())
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), wanted) {
			go func() { defer close(rest); _, _ = io.Copy(io.Discard, out) }()
			return lines.Text()
		}
	}
	close(rest)
	t.Fatalf("%s ended before it said %q", cmd.Args[1], wanted)
	return ""
}

// TestRelayInside: with tokens in the configuration, up and serve are a relay too. The
// token that an executor was started with is not in the environment of what clients run.
func TestRelayInside(t *testing.T) {
	t.Parallel()
	for _, role := range [][]string{{"up", "--demo", "--no-browser"}, {"serve", "--demo"}} {
		t.Run(role[0], func(t *testing.T) {
			t.Parallel()
			h := home.New(t)
			tokens := filepath.Join(h.Dir, "relay.tokens")
			h.Vars = []string{"THOLE_RELAY_TOKENS_FILE=" + tokens}
			line := begin(t, h.Command(append(role, "--listen", "127.0.0.1:0")...), "Its relay for exec-servers is ")
			url, _, _ := strings.Cut(strings.TrimPrefix(line, "Its relay for exec-servers is "), ",")
			token, err := os.ReadFile(tokens)
			if err != nil {
				t.Fatal(err)
			}
			secret := "THOLE_RELAY_TOKEN=" + strings.TrimSpace(string(token))
			executor := func() *exec.Cmd {
				cmd := h.Command("exec-server", "--remote", url, "--environment-id", "desk")
				cmd.Env = append(cmd.Env, secret, "SHOWN=yes")
				return cmd
			}
			begin(t, executor(), "key sha256:")
			second, err := executor().CombinedOutput()
			if err == nil || !strings.Contains(string(second), `environment "desk" is served by another executor`) || !strings.Contains(string(second), "--environment-id") {
				t.Errorf("a second executor: %v\n%s", err, second)
			}
			out, words, code := h.Run("exec-server", "connect", "--remote", url, "--environment-id", "desk", "--credential-file", tokens, "--", "env")
			if code != 0 || !strings.Contains(out, "SHOWN=yes") {
				t.Fatalf("exit %d\n%s%s", code, out, words)
			}
			if strings.Contains(out, "THOLE_RELAY_TOKEN") {
				t.Error("the programs that clients start have the executor's token")
			}
		})
	}
}

// TestRelayForwards: over TLS, a forwarder in front of an exec-server, commands through it, and
// a real codex that reaches it with the key pinned. A renewed certificate needs no restart.
func TestRelayForwards(t *testing.T) {
	t.Parallel()
	codex := lab.Codex(t)
	h := home.New(t)
	cert, private, trust := certificate(t, h.Dir)
	in := func(name string) string { return filepath.Join(h.Dir, name) }
	h.Vars = []string{"SSL_CERT_FILE=" + cert}
	tokens := in("relay.tokens")
	url := begin(t, h.Command("relay", "serve", "--tokens", tokens, "--tls-cert", cert, "--tls-key", private), "https://")
	server := h.Command("exec-server", "--ws-auth", "none")
	server.Env = append(server.Env, "SHOWN=served")
	remote := []string{"--remote", url, "--environment-id", "desk", "--credential-file", tokens}
	line := begin(t, h.Command(append([]string{"exec-server", "forward", "--connect", begin(t, server, "ws://")}, remote...)...), "key sha256:")
	key := strings.TrimPrefix(line, "key ")

	connect := func(more ...string) []string { return slices.Concat([]string{"exec-server", "connect"}, remote, more) }
	out, words, code := h.Run(connect("--executor-key", key, "--", "env")...)
	if code != 0 || !strings.Contains(out, "SHOWN=served") {
		t.Fatalf("exit %d\n%s%s", code, out, words)
	}
	other := "sha256:" + strings.Repeat("0", len(key)-len("sha256:"))
	if out, words, code := h.Run(connect("--executor-key", other, "--", "env")...); code == 0 || out != "" {
		t.Errorf("another key: exit %d\n%s%s", code, out, words)
	}

	if err := os.WriteFile(in("connect.token"), []byte("a-capability"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := begin(t, h.Command(connect("--executor-key", key, "--listen", "ws://127.0.0.1:0", "--ws-auth", "capability-token", "--ws-token-file", in("connect.token"))...), "ws://")
	user, dir := t.TempDir(), t.TempDir()
	if err := modelsim.CodexConfig(user, modelsim.Start(t).URL()); err != nil {
		t.Fatal(err)
	}
	entry := fmt.Sprintf("default = \"desk\"\ninclude_local = false\n[[environments]]\nid = \"desk\"\nurl = %q\nauth_bearer_token = \"a-capability\"\n", at)
	if err := os.WriteFile(filepath.Join(user, "environments.toml"), []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), poll.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, codex, "exec", "--skip-git-repo-check", "--sandbox=danger-full-access", "sim: run echo $SHOWN-$((20+3)) ;; say Result: %tool%")
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + user, "CODEX_HOME=" + user, "PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if text, _ := cmd.CombinedOutput(); !strings.Contains(string(text), "served-23") {
		t.Errorf("codex:\n%s", text)
	}
	if c, err := execclient.Dial(ctx, at, execclient.Options{Token: "another"}); err == nil {
		_ = c.Close()
		t.Error("a client without the token is let in")
	}

	serves := func(trust *x509.CertPool) bool {
		c, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12})
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}
	if !serves(trust) {
		t.Error("another certificate is served")
	}
	if _, _, next := certificate(t, h.Dir); !serves(next) || serves(trust) {
		t.Error("the renewed certificate is not served")
	}
}
