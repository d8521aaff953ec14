package attachment

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/process"
)

const (
	launchTime = 30 * time.Second
	// replaceTime is how long a new session waits for the old one's server.
	replaceTime = 5 * time.Second
	// maxSocket is what every system allows for the path of a socket.
	maxSocket = 100
)

// launch starts a server of our own in a session of its own: it outlives us, so
// that a terminal on it does, and our successor finds it by its identity.
func (k *Keeper) launch(ctx context.Context, a *Attachment, o Open) error {
	dir := filepath.Join(k.cfg.Dir, string(a.ID))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "start app-server: %w", err)
	}
	sock := filepath.Join(dir, "s")
	if len(sock) > maxSocket {
		short, err := os.MkdirTemp("", "thole")
		if err != nil {
			return thole.Errorf(thole.CodeUnavailable, "start app-server: %w", err)
		}
		sock = filepath.Join(short, "s")
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "start app-server: %w", err)
	}
	defer log.Close()
	a.Address = "unix://" + sock
	cmd := exec.Command(o.Codex, "app-server", "--listen", a.Address)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = o.Dir, withHome(o.Env, o.Home), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "start %s app-server: %w", o.Codex, err).WithHint("npm install -g @openai/codex")
	}
	exited := make(chan struct{})
	go func() { // ends with the server, which may outlive us
		_ = cmd.Wait()
		close(exited)
	}()
	a.Process, err = identify(cmd.Process.Pid)
	if err == nil {
		err = listening(ctx, sock, exited)
	}
	if err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		said, _ := os.ReadFile(filepath.Join(dir, "log"))
		return thole.Errorf(thole.CodeUnavailable, "the app-server did not start: %w: %s", err, lastLine(said))
	}
	return nil
}

func withHome(env []string, home string) []string {
	out := []string{"CODEX_HOME=" + home}
	for _, e := range env {
		if !strings.HasPrefix(e, "CODEX_HOME=") {
			out = append(out, e)
		}
	}
	return out
}

// listening waits for the socket, which tells nobody when it is there.
func listening(ctx context.Context, sock string, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, launchTime)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := (&net.Dialer{}).DialContext(ctx, "unix", sock); err == nil {
			return c.Close()
		}
		select {
		case <-tick.C:
		case <-exited:
			return errors.New("it exited")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// signal reaches a server of ours and what it started, by its identity.
func signal(a Attachment, sig syscall.Signal) {
	if a.Kind == Owned && a.Process.Alive() == nil {
		_ = syscall.Kill(-a.Process.PID, sig)
	}
}

// drain ends a server that a new one must replace: two cannot write one thread.
func (k *Keeper) drain(ctx context.Context, a Attachment) error {
	signal(a, syscall.SIGTERM)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(replaceTime)
	defer late.Stop()
	for a.Process.Alive() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return thole.Errorf(thole.CodeBusy, "the thread's server is still finishing a turn").WithHint("try again when it is done, or end process %d", a.Process.PID)
		}
	}
	return nil
}

// clear removes what a server of ours left.
func (k *Keeper) clear(a Attachment) {
	if a.Kind != Owned {
		return
	}
	_ = os.RemoveAll(filepath.Join(k.cfg.Dir, string(a.ID)))
	sock := strings.TrimPrefix(a.Address, "unix://")
	if dir := filepath.Dir(sock); filepath.Dir(dir) == filepath.Clean(os.TempDir()) && strings.HasPrefix(filepath.Base(dir), "thole") {
		_ = os.Remove(sock)
		_ = os.Remove(dir)
	}
}

// Autopsy opens the stored threads of a dead server of ours with one that speaks
// on pipes. Nobody else can have loaded them: they were reached by our socket
// only, and the lock that a running server holds on a thread would refuse.
func (k *Keeper) Autopsy(ctx context.Context, a Attachment, o appclient.Options) (*appclient.Client, func(), error) {
	if a.Kind != Owned {
		return nil, nil, thole.Errorf(thole.CodeUnsupported, "the server was not ours: somebody may have started it again")
	}
	vars := map[string]string{"CODEX_HOME": a.Home, "HOME": os.Getenv("HOME"), "PATH": os.Getenv("PATH")}
	p, err := process.Start(process.Spec{Path: a.Program, Args: []string{"app-server"}, Dir: "/", Env: vars})
	if err != nil {
		return nil, nil, err
	}
	client, err := appclient.Pipe(ctx, p.Stdout, p.Stdin, o)
	end := func() {
		p.Kill()
		_ = p.Wait(context.WithoutCancel(ctx))
		if client != nil {
			client.Close()
		}
		_ = p.Stdout.Close()
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return client, end, nil
}
