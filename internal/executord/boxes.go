package executord

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/sandbox/repository"
	"github.com/tholehq/thole/internal/sandbox/seccomp"
	"github.com/tholehq/thole/internal/toolchain"
	"github.com/tholehq/thole/internal/unguarded"
)

// boxes are where everything runs that is not executord: one box that agents, shells
// and terminals share, and one for agents who only plan, in which the workspace is
// read-only. A box that ended is made again for the next program; nil is no box at
// all, where a person typed so.
type boxes struct {
	cfg   wire.Box
	proxy *egress.Proxy
	way   *way // to the gateway; nil: none
	dirs  Dirs
	doors []*os.File // of the control groups in which all boxes are
	set   *settings

	mu     sync.Mutex // guards what follows, and is held while a box is made
	by     map[bool]*walled
	closed bool

	sentinels sync.WaitGroup
	watcher
}

// walled is a box, the ports of the machine that it has, and what is laid over the
// repositories of a person in it.
type walled struct {
	*box.Box
	ports  map[uint16]bool
	guards *repository.Guards
}

// Close ends the box.
func (w *walled) Close() {
	_ = w.Box.Close()
	w.guards.Release()
}

// boxTimeout bounds the making of a box.
const boxTimeout = 20 * time.Second

func newBoxes(cfg *wire.Box, proxy *egress.Proxy, way *way, dirs Dirs, set *settings) *boxes {
	if cfg == nil {
		return nil
	}
	b := &boxes{cfg: *cfg, proxy: proxy, way: way, dirs: dirs, set: set, by: map[bool]*walled{}}
	for i := range cfg.Doors {
		b.doors = append(b.doors, os.NewFile(uintptr(wire.DoorsAt+i), "control group"))
	}
	b.begin()
	return b
}

// shared is the box of everything that does not only plan.
func (b *boxes) shared() (*box.Box, error) { return b.get(false, provider.Grant{}, "") }

// get returns a box in which the models of a grant can be reached.
func (b *boxes) get(plan bool, g provider.Grant, providerName string) (*box.Box, error) {
	if b == nil {
		return nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, thole.Errorf(thole.CodeUnavailable, "the executor stops")
	}
	for which, w := range b.by {
		select {
		case <-w.Done():
			delete(b.by, which)
		default:
		}
	}
	if w := b.by[plan]; w != nil && providerName != "" && !unguarded.Build && !b.set.hold(w.Box, providerName) {
		for _, w := range b.by { // the places are made again, which no box may see
			w.Close()
		}
		clear(b.by)
	}
	w := b.by[plan]
	if w == nil {
		made, guards, err := b.make(plan)
		if code := thole.CodeOf(err); code == thole.CodeInvalid {
			return nil, err // of the person's directory
		} else if err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "make the agent's box: %w", err)
		}
		w = &walled{Box: made, ports: map[uint16]bool{}, guards: guards}
		if err := b.sentinel(w); err != nil {
			w.Close()
			return nil, thole.Errorf(thole.CodeUnavailable, "watch the repository: %w", err).WithHint("sysctl fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288 allows more of such watches")
		}
		b.by[plan] = w
		go func() { <-made.Done(); guards.Release() }() // however it ends
	}
	if b.proxy == nil || providerName == "" {
		return w.Box, nil
	}
	models := g.Models(providerName)
	for i, model := range models {
		port, local := onLoopback(model)
		if local {
			models[i] = net.JoinHostPort("localhost", strconv.Itoa(int(port)))
		}
		if err := b.proxy.Allow(models[i]); err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "lead the agent to its model: %w", err)
		}
		if !local || w.ports[port] {
			continue
		}
		if err := b.forward(w.Box, port, models[i]); err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "lead the agent to its model on port %d: %w", port, err).
				WithHint("a program of the agent has taken that port; stop the executor and start it again")
		}
		w.ports[port] = true
	}
	return w.Box, nil
}

func (b *boxes) make(plan bool) (_ *box.Box, guards *repository.Guards, err error) {
	defer func() {
		if err != nil {
			guards.Release()
		}
	}()
	ctx, cancel := context.WithTimeoutCause(context.Background(), boxTimeout, errors.New("it was not ready in time"))
	defer cancel()
	profile := seccomp.Box
	if b.cfg.Place != nil {
		profile = seccomp.InPlace
	}
	filter, err := profile.File()
	if err != nil {
		return nil, nil, err
	}
	defer filter.Close()
	args := append([]string{"--seccomp", "4"}, b.cfg.Args...)
	files, guards, err := b.files(plan)
	if err != nil {
		return nil, guards, err
	}
	// Each is a mount of its own: no file has a name in both, and neither can be
	// exchanged from inside.
	args = append(append(args, files...), "--bind", b.dirs.Data, b.dirs.Data)
	if !unguarded.Build {
		over, err := b.set.binds(len(b.by) == 0)
		if err != nil {
			return nil, guards, err
		}
		args = append(args, over...)
	}
	args = append(args, "--remount-ro", "/", "--chdir", b.dirs.Workspace, "--", b.cfg.Init)
	path, args := enter(len(b.doors), b.cfg.Bwrap, append(args, box.InitArgs...))
	made, err := box.Start(ctx, box.Config{Path: path, Args: args, Files: append([]*os.File{filter}, b.doors...)})
	if err == nil {
		if err = b.bind(made); err != nil {
			made.Close()
		}
	}
	if err == nil {
		if err = hold(made, guards); err != nil {
			made.Close()
		}
	}
	if err == nil && b.proxy != nil {
		err = b.connect(made)
	}
	return made, guards, err
}

// enter is a command line that goes through doors, the descriptors after the filter's,
// before it becomes another, which does not have them any more. It fails closed: what
// cannot enter does not run.
func enter(doors int, name string, args []string) (string, []string) {
	if doors == 0 {
		return name, args
	}
	through, shut := "", "exec"
	for fd := box.Socket + 2; fd < box.Socket+2+doors; fd++ {
		through += "echo 0 >&" + strconv.Itoa(fd) + " && "
		shut += " " + strconv.Itoa(fd) + ">&-"
	}
	return "/bin/sh", slices.Concat([]string{"-c", through + shut + ` && exec "$@"`, "sh", name}, args)
}

// proxyPort is where programs inside find the proxy.
const proxyPort = 3128

// connect serves the proxy and the way to the gateway in a box, before anything runs
// there: no agent takes their ports first.
func (b *boxes) connect(made *box.Box) error {
	serve := func(port uint16, serve func(net.Listener) error) error {
		ln, err := made.Listen(port)
		if err != nil {
			made.Close()
			return err
		}
		go func() { <-made.Done(); ln.Close() }()
		go func() { _ = serve(ln) }()
		return nil
	}
	if err := serve(proxyPort, b.proxy.Serve); err != nil || b.way == nil {
		return err
	}
	return serve(gatewayPort, b.way.serve)
}

// environ adds what leads programs to the proxy, and whom they trust.
func (b *boxes) environ(env map[string]string) map[string]string {
	if b != nil && b.cfg.CA != "" {
		for _, name := range toolchain.Names(toolchain.Trust) {
			env[name] = b.cfg.CA
		}
	}
	if b == nil || b.proxy == nil {
		return env
	}
	at := "http://127.0.0.1:" + strconv.Itoa(proxyPort)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env[name], env[strings.ToLower(name)] = at, at
	}
	env["NO_PROXY"], env["no_proxy"] = "127.0.0.1,localhost,::1", "127.0.0.1,localhost,::1"
	env["NODE_USE_ENV_PROXY"] = "1" // node asks for it
	env["GIT_SSH_COMMAND"] = "ssh -o 'ProxyCommand=" + b.cfg.Init + " box connect %h %p'"
	return env
}

func (b *boxes) close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.closed = true
	by := b.by
	b.mu.Unlock()
	b.halt()
	for _, w := range by {
		w.Close()
	}
	b.sentinels.Wait()
}

// all are the boxes there are.
func (b *boxes) all() (list []*box.Box) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.by {
		list = append(list, w.Box)
	}
	return list
}
