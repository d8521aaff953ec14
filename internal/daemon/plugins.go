package daemon

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/plugin"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/version"
)

const (
	// pluginProtocol is the version of the plugins' methods.
	pluginProtocol = 1
	// pluginLease is how long a lease lasts that nobody moves on.
	pluginLease = 15 * time.Minute
	maxName     = 200
)

// Plugins answers the methods of host plugins: programs that hold app-servers through thole
// and hand in results of their own. Who calls is the process that the kernel named and the
// plugin that it introduced itself as on the same connection.
type Plugins struct {
	Store   plugin.Store
	Keeper  *keeper.Keeper
	Machine *delivery.Machine
	Results *artifact.Keeper
	// Alone: this home's store is its own, so that a server that a delivery brings is
	// started where the plugin runs.
	Alone bool
	// Forecast and Known are the submitter's, the first for results that bring a server, too.
	Forecast func(ctx context.Context, a delivery.Address, p thole.DeliveryPolicy, brings *thole.PluginTarget) wire.Forecast
	Known    func(ctx context.Context, a delivery.Address, t thole.Target) error
	// Query shows a job with its batch.
	Query func(ctx context.Context, actor thole.Actor, p wire.JobParams) (wire.Job, error)
	// Reconcile has what is under way looked at now.
	Reconcile func()
	// Unsure reports an error that leaves open whether a change was committed.
	Unsure func(error) bool
	Now    func() time.Time
}

// Methods lists what s answers.
func (s *Plugins) Methods() map[string]Method {
	return map[string]Method{
		wire.PluginHello:      method(s.hello),
		wire.AppServerEnsure:  method(s.ensure),
		wire.AppServerRefresh: method(s.refresh),
		wire.AppServerStop:    method(s.stop),
		wire.DeliveryEnqueue:  method(s.enqueue),
		wire.DeliveryInspect:  method(s.inspect),
	}
}

func (s *Plugins) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

// hello proves that the plugin is the process it says, and binds it to the connection.
func (s *Plugins) hello(ctx context.Context, actor thole.Actor, p wire.PluginHelloParams) (wire.PluginWelcome, error) {
	for what, text := range map[string]string{"name": p.Name, "instance_id": p.Instance, "release": p.Release} {
		if err := checkName(what, text); err != nil {
			return wire.PluginWelcome{}, err
		}
	}
	peer := PeerOf(ctx)
	if peer == nil || peer.PID == 0 {
		return wire.PluginWelcome{}, thole.Errorf(thole.CodeUnsupported, "plugin hello: the process at the other end is not known here").WithHint("connect to the home's socket with JSON lines")
	}
	if p.PID != peer.PID {
		return wire.PluginWelcome{}, thole.Errorf(thole.CodeForbidden, "plugin hello: process %d speaks, and says that it is process %d", peer.PID, p.PID)
	}
	process := procid.Of(peer.PID)
	if process.Start == "" || process.Boot == "" {
		return wire.PluginWelcome{}, thole.Errorf(thole.CodeUnsupported, "plugin hello: process %d cannot be identified", peer.PID)
	}
	if have := peer.Plugin(); have != nil && (have.Plugin != p.Name || have.ID != p.Instance) {
		return wire.PluginWelcome{}, thole.Errorf(thole.CodeConflict, "plugin hello: this connection speaks for instance %q of %q", have.ID, have.Plugin)
	}
	in := plugin.Instance{User: actor.User, Plugin: p.Name, ID: p.Instance, Release: p.Release, Process: process, HelloAt: s.now()}
	ok, err := s.Store.PutInstance(ctx, in, func(id procid.Identity) bool { return id.Alive() != nil })
	if err != nil {
		return wire.PluginWelcome{}, err
	}
	if !ok {
		return wire.PluginWelcome{}, thole.Errorf(thole.CodeConflict, "plugin hello: another process speaks for instance %q of %q", p.Instance, p.Name).
			WithHint("give each process an instance_id of its own")
	}
	peer.introduce(&in)
	w := wire.PluginWelcome{
		Protocol: pluginProtocol, Version: version.Version, Instance: in.ID, LeaseSeconds: int(pluginLease / time.Second),
		Capabilities: []string{plugin.CapabilityDriver},
	}
	if s.Alone {
		w.Capabilities = append(w.Capabilities, plugin.CapabilityOwned)
	}
	return w, nil
}

// checkName takes words that can stand in a ledger's line.
func checkName(what, text string) error {
	if text == "" || len(text) > maxName || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return thole.Errorf(thole.CodeInvalid, "%s %q is not a text of 1 to %d bytes in one line", what, text, maxName)
	}
	return nil
}

// caller is the instance whose connection a call came on.
func (s *Plugins) caller(ctx context.Context, actor thole.Actor) (*plugin.Instance, error) {
	in := PeerOf(ctx).Plugin()
	if in == nil || in.User != actor.User {
		return nil, thole.Errorf(thole.CodeUnauthorized, "no plugin was introduced on this connection").WithHint("call %s first", wire.PluginHello)
	}
	if err := in.Process.Alive(); err != nil {
		return nil, thole.Errorf(thole.CodeUnauthorized, "the plugin's %w", err)
	}
	return in, nil
}

// ensure holds a server of thole's for a thread as long as the plugin's process lives and
// moves its lease on. Repeating it returns the same server, or a new one in a new epoch if
// that one is gone.
func (s *Plugins) ensure(ctx context.Context, actor thole.Actor, p wire.EnsureParams) (wire.AppServerLease, error) {
	in, err := s.caller(ctx, actor)
	if err != nil {
		return wire.AppServerLease{}, err
	}
	home, err := codexHomeOf(p.CodexHome)
	if err != nil {
		return wire.AppServerLease{}, err
	}
	program, dir, err := serverProgram(p.ServerProfile)
	if err != nil {
		return wire.AppServerLease{}, err
	}
	if program, err = exec.LookPath(program); err != nil {
		return wire.AppServerLease{}, thole.Errorf(thole.CodeUnavailable, "codex_binary: %w", err)
	}
	thread := thole.ThreadID(p.ThreadID)
	if err := s.Known(ctx, delivery.Address{User: actor.User, Endpoint: home, Thread: thread}, thole.TargetCLI); err != nil {
		return wire.AppServerLease{}, err
	}
	env := p.Env
	if env == nil {
		env = os.Environ()
	}
	a, err := s.Keeper.Open(ctx, keeper.Open{
		User: actor.User, Home: home, Thread: thread, Kind: attachment.Owned, Codex: program, Dir: dir, Env: env, Client: in.Process.PID,
		Trust: attachment.Trust(p.Trust), Wish: attachment.Wishes{Approval: attachment.Wish(p.AllowApproval), Network: attachment.Wish(p.AllowNetwork), Write: attachment.Wish(p.AllowWrite)},
	})
	if err != nil {
		return wire.AppServerLease{}, err
	}
	l := plugin.Lease{
		ID: plugin.InstanceLease(in, home, thread), User: actor.User, Plugin: in.Plugin, Instance: in.ID,
		Endpoint: home, Thread: thread, Attachment: a.ID, Until: s.now().Add(pluginLease),
	}
	if err := s.Store.PutLease(ctx, l); err != nil {
		return wire.AppServerLease{}, err
	}
	return leaseView(&l, &a), nil
}

// refresh proves that a lease's server is there still, and moves the lease on.
func (s *Plugins) refresh(ctx context.Context, actor thole.Actor, p wire.AppServerParams) (wire.AppServerLease, error) {
	in, err := s.caller(ctx, actor)
	if err != nil {
		return wire.AppServerLease{}, err
	}
	l, a, err := s.lease(ctx, in, p.LeaseID)
	if err != nil {
		return wire.AppServerLease{}, err
	}
	l.Until = s.now().Add(pluginLease)
	if err := s.Store.PutLease(ctx, *l); err != nil {
		return wire.AppServerLease{}, err
	}
	return leaseView(l, &a), nil
}

// stop gives a lease up. Its server ends when what was accepted in it has ended.
func (s *Plugins) stop(ctx context.Context, actor thole.Actor, p wire.AppServerParams) (wire.AppServerLease, error) {
	in, err := s.caller(ctx, actor)
	if err != nil {
		return wire.AppServerLease{}, err
	}
	l, err := s.Store.Lease(ctx, p.LeaseID)
	if err != nil {
		return wire.AppServerLease{}, err
	}
	if !l.Of(in) {
		return wire.AppServerLease{}, noLease(p.LeaseID)
	}
	a, err := s.release(ctx, l, in.Process)
	if err != nil {
		return wire.AppServerLease{}, err
	}
	v := leaseView(l, &a)
	v.Until = time.Time{}
	return v, nil
}

func noLease(id string) error {
	return thole.Errorf(thole.CodeNotFound, "no lease %q of this plugin's instance", id).WithHint("%s makes one", wire.AppServerEnsure)
}

// lease is a lease of the instance whose server lives and takes deliveries.
func (s *Plugins) lease(ctx context.Context, in *plugin.Instance, id string) (*plugin.Lease, attachment.Attachment, error) {
	none := attachment.Attachment{}
	l, err := s.Store.Lease(ctx, id)
	if err != nil {
		return nil, none, err
	}
	if !l.Of(in) {
		return nil, none, noLease(id)
	}
	a, err := s.Keeper.ByID(ctx, l.Attachment)
	if err != nil {
		return nil, none, err
	}
	if !a.Usable() || a.Process.Alive() != nil || !l.Until.After(s.now()) {
		return nil, none, thole.Errorf(thole.CodeGone, "the server of lease %s is over", id).WithHint("%s starts it again, in a new epoch", wire.AppServerEnsure)
	}
	return l, a, nil
}

// release ends a lease and what it held: the server first, so that a daemon that dies in
// between does it again. One that a terminal has taken over stays.
func (s *Plugins) release(ctx context.Context, l *plugin.Lease, process procid.Identity) (attachment.Attachment, error) {
	a, err := s.Keeper.ByID(ctx, l.Attachment)
	if err != nil && thole.CodeOf(err) != thole.CodeNotFound {
		return a, err
	}
	if err == nil && a.State != attachment.Retired && a.Client == process {
		if a, err = s.Keeper.Leave(ctx, l.User, a.ID); err != nil {
			return a, err
		}
	}
	return a, s.Store.DropLease(ctx, l.ID)
}

// Sweep ends leases whose time or whose process is over, and forgets processes that are.
func (s *Plugins) Sweep(ctx context.Context) error {
	instances, err := s.Store.Instances(ctx)
	if err != nil {
		return err
	}
	leases, err := s.Store.Leases(ctx)
	if err != nil {
		return err
	}
	var all error
	failed := map[int]bool{}
	for i := range leases {
		l := &leases[i]
		n := slices.IndexFunc(instances, func(in plugin.Instance) bool { return l.Of(&in) })
		var process procid.Identity
		if n >= 0 {
			process = instances[n].Process
		}
		if process.Alive() == nil && l.Until.After(s.now()) {
			continue
		}
		if _, err := s.release(ctx, l, process); err != nil {
			failed[n] = true
			all = errors.Join(all, err)
		}
	}
	for n, in := range instances {
		if in.Process.Alive() != nil && !failed[n] {
			all = errors.Join(all, s.Store.ForgetInstance(ctx, in))
		}
	}
	return all
}

func leaseView(l *plugin.Lease, a *attachment.Attachment) wire.AppServerLease {
	return wire.AppServerLease{
		LeaseID: l.ID, SessionID: string(a.ID), Epoch: a.Epoch, ThreadID: string(l.Thread), CodexHome: l.Endpoint, Address: a.Address,
		ServerPID: a.Process.PID, State: string(a.State), Until: l.Until,
	}
}

// serverProgram checks what a server would be started with. That the program is there is
// seen when it is.
func serverProgram(p wire.ServerProfile) (program, dir string, err error) {
	switch {
	case p.CodexBinary == "":
		return "", "", thole.Errorf(thole.CodeInvalid, "no codex_binary")
	case strings.ContainsRune(p.CodexBinary, os.PathSeparator) && !filepath.IsAbs(p.CodexBinary):
		return "", "", thole.Errorf(thole.CodeInvalid, "codex_binary %q is neither a name nor an absolute path", p.CodexBinary)
	case p.Dir != "" && !filepath.IsAbs(p.Dir):
		return "", "", thole.Errorf(thole.CodeInvalid, "cwd %q is not an absolute path", p.Dir)
	}
	w := attachment.Wishes{Approval: attachment.Wish(p.AllowApproval), Network: attachment.Wish(p.AllowNetwork), Write: attachment.Wish(p.AllowWrite)}
	if _, err := w.Check(); err != nil {
		return "", "", err
	}
	switch attachment.Trust(p.Trust) {
	case "", attachment.StrictSafe, attachment.TrustedAll:
	default:
		return "", "", thole.Errorf(thole.CodeInvalid, "auto_delivery_policy %q is not strict-safe or trusted-all", p.Trust)
	}
	if dir = p.Dir; dir == "" {
		dir = "/"
	}
	return p.CodexBinary, dir, nil
}

// codexHomeOf is the Codex home that a plugin means: the one it names, else the daemon's
// user's own.
func codexHomeOf(named string) (string, error) {
	dir := named
	if dir == "" {
		dir = os.Getenv("CODEX_HOME")
	}
	if dir == "" {
		h, err := os.UserHomeDir()
		if err != nil {
			return "", thole.Errorf(thole.CodeInvalid, "no home directory: %w", err).WithHint("name codex_home")
		}
		dir = filepath.Join(h, ".codex")
	}
	if !filepath.IsAbs(dir) {
		return "", thole.Errorf(thole.CodeInvalid, "codex_home %q is not an absolute path", dir)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Clean(dir), nil
}
