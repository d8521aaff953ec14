package keeper

import (
	"context"
	"encoding/json"
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
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/provider/table"
)

const (
	launchTime = 30 * time.Second
	// replaceTime is how long a new session waits for the old one's server.
	replaceTime = 5 * time.Second
	// maxSocket is what every system allows for the path of a socket.
	maxSocket = 100
)

// gate lets a program begin only after a line came: one whose starter died before
// it noted the process never becomes a server.
const gate = `read -r go && exec "$@" </dev/null`

// place chooses the socket of a server that thole starts, which its row names before it is
// started.
func (k *Keeper) place(a attachment.Attachment) (string, error) {
	for _, dir := range []string{k.dir(a), filepath.Join(os.TempDir(), "thole-"+string(a.ID))} {
		if sock := filepath.Join(dir, "s"); len(sock) <= maxSocket {
			return "unix://" + sock, nil
		}
	}
	return "", thole.Errorf(thole.CodeInvalid, "the path of a socket in %s would be too long", os.TempDir()).WithHint("set TMPDIR to a shorter directory")
}

// launch starts a server of our own in a session of its own: it outlives us, so
// that a terminal on it does. Its row is there already; the process is noted
// next to the socket before it may begin, so that a successor ends what we leave.
// The identity it returns is the server's, whatever launcher started that.
func (k *Keeper) launch(ctx context.Context, a attachment.Attachment, o Open) (procid.Identity, error) {
	none := procid.Identity{}
	fail := func(err error) (procid.Identity, error) {
		return none, thole.Errorf(thole.CodeUnavailable, "start app-server: %w", err)
	}
	if _, err := exec.LookPath(o.Codex); err != nil {
		return none, thole.Errorf(thole.CodeUnavailable, "start %s app-server: %w", o.Codex, err).WithHint("%s", table.Of(table.Contract).Install)
	}
	dir, sock := k.dir(a), strings.TrimPrefix(a.Address, "unix://")
	for _, d := range []string{dir, filepath.Dir(sock)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fail(err)
		}
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fail(err)
	}
	defer log.Close()
	cmd := exec.Command("/bin/sh", "-c", gate, "sh", o.Codex, "app-server", "--listen", a.Address)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = o.Dir, withHome(o.Env, o.Home), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return fail(err)
	}
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	k.step("started")
	leader, err := identify(cmd.Process.Pid)
	exited := make(chan struct{})
	go func() { // ends with the launcher, which may outlive us
		_ = cmd.Wait()
		close(exited)
	}()
	if err == nil {
		err = note(filepath.Join(dir, launcherFile), leader)
	}
	k.step("noted")
	if err == nil {
		_, err = hold.Write([]byte("go\n"))
	}
	if e := hold.Close(); err == nil {
		err = e
	}
	k.step("released")
	if err == nil {
		err = listening(ctx, sock, exited)
	}
	server := none
	if err == nil {
		server, err = serverOf(ctx, a.Address, 0)
	}
	k.step("listening")
	if err != nil {
		said, _ := os.ReadFile(filepath.Join(dir, "log"))
		return none, thole.Errorf(thole.CodeUnavailable, "the app-server did not start: %w: %s", err, lastLine(said))
	}
	return server, nil
}

func note(file string, id procid.Identity) error {
	b, err := json.Marshal(id)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	return err
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

// listening waits for the socket, which signals to no one when it is there.
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

// Autopsy opens the stored threads of a dead server of thole's with one that speaks
// on pipes. Nobody else can have loaded them: they were reached by our socket
// only, and the lock that a running server holds on a thread would refuse.
func (k *Keeper) Autopsy(ctx context.Context, a attachment.Attachment, o appclient.Options) (*appclient.Client, func(), error) {
	if a.Kind != attachment.Owned {
		return nil, nil, thole.Errorf(thole.CodeUnsupported, "thole did not start the server, so another process may have started it again")
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
