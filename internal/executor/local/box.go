package local

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/sandbox"
	"github.com/tholehq/thole/internal/sandbox/repository"
	"github.com/tholehq/thole/internal/workspace"
)

// The places an agent sees inside its box.
const (
	sandboxWorkspace = "/workspace"
	sandboxHome      = "/home/agent"
	sandboxData      = sandboxHome + "/" + workspace.AgentData
	sandboxRun       = "/run/thole"
	sandboxGateway   = "/run/thole/gateway" // executord alone
)

// sharedMemory is the size of /dev/shm in bytes. It and what else of a box is no file of
// the executor takes memory of the machine, so nothing else of that is writable.
const sharedMemory = 256 << 20

// boxUser is who an agent is inside, whichever user it is on the host.
var boxUser = []string{"--uid", "1000", "--gid", "1000"}

// box is bubblewrap's path, "" where agents run without walls, or why there is
// none: then no executor starts.
func (d *Driver) box(ctx context.Context) (string, error) {
	if d.cfg.Bwrap == "" && d.cfg.Box != nil {
		return d.cfg.Box(ctx)
	}
	if d.cfg.Bwrap == "" {
		return "", nil
	}
	return d.cfg.Bwrap, CheckBwrap(ctx, d.cfg.Bwrap, d.cfg.UIDBase)
}

// CheckBwrap tries whether bubblewrap works here, for root as a user of the range
// that agents run as.
func CheckBwrap(ctx context.Context, path string, uidBase int) error {
	inside := sandbox.Agents(sandbox.RefusesNested(ctx, path)).Add("--ro-bind", "/", "/").Kernel().Command("/", "/bin/true")
	args := sandbox.NewBox(boxUser...).Add("--ro-bind", "/", "/").Hand().Command("/", append([]string{path}, inside...)...)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = credential(uidBase)
	if out, err := cmd.CombinedOutput(); err != nil {
		return thole.Errorf(thole.CodeUnsupported, "agents cannot be kept apart from this machine: bubblewrap does not work: %w: %s (%w)", err, strings.TrimSpace(string(out)), executor.ErrUnavailable).
			WithHint("sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000 allows user namespaces; executor.isolation = \"none\" runs agents without any walls")
	}
	return nil
}

// FindBwrap looks for bubblewrap and tries it.
func FindBwrap(ctx context.Context, uidBase int) (string, error) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return "", thole.Errorf(thole.CodeUnsupported, "agents cannot be kept apart from this machine: bubblewrap is not installed (%w)", executor.ErrUnavailable).
			WithHint("apt-get install bubblewrap; executor.isolation = \"none\" runs agents without any walls")
	}
	return path, CheckBwrap(ctx, path, uidBase)
}

// boxed is executord's command line inside bubblewrap. It is not the agent's box: that
// one executord makes itself, with less in it (see inner). As root the files of the
// executor and of the CLIs may lie where nobody else can look, so they are put on a
// stage first, and the process that puts them there becomes the agent's user.
func (d *Driver) boxed(spec executor.Spec, place *repository.Place, bwrap string, uid int, tools Tools, trust, refuses bool, doors int) (string, []string, error) {
	id, l := spec.ID, spec.Limits
	var staged []string
	from := func(path string) string {
		if uid == 0 {
			return path
		}
		staged = append(staged, path)
		return sandbox.Staged(len(staged) - 1)
	}
	lent := func(path string) string {
		if uid == 0 {
			return path
		}
		return from(sandbox.Lent(path))
	}
	box := sandbox.NewBox(boxUser...).Add("--die-with-parent", "--new-session").Hand().System().Add(etcBinds()...)
	box.Add("--ro-bind", from(d.dir(id, own, "passwd")), "/etc/passwd", "--ro-bind", from(d.dir(id, own, "group")), "/etc/group",
		"--ro-bind", from(d.dir(id, own, "here")), sandboxRun+"/here",
		"--ro-bind", from(d.cfg.Binary), sandboxRun+"/thole",
		"--ro-bind", from(bwrap), sandboxRun+"/bwrap",
		"--ro-bind", from(d.dir(id, own, "tools")), sandboxTools,
		"--bind", from(d.dir(id, "state")), sandboxRun+"/state",
		"--bind", from(d.dir(id, "auth")), sandboxRun+"/auth",
		"--bind", from(d.dir(id, "home")), sandboxHome,
		"--bind", from(d.dir(id, "data")), sandboxData,
		"--bind", from(d.dir(id, "tmp")), "/tmp")
	d.showFiles(box, id, place, objects(spec.Files), from, lent)
	for _, p := range tools.sorted() { // after /tmp, which would hide what lies there
		box.Add("--ro-bind-try", from(p), p)
	}
	if d.cfg.Gateway != "" {
		box.Add("--ro-bind", from(filepath.Dir(d.cfg.Gateway)), sandboxGateway)
	}
	ca := ""
	if trust {
		ca = sandboxRun + "/ca.pem"
		box.Add("--ro-bind", from(d.dir(id, own, "ca.pem")), ca)
	}
	within := inner(tools, objects(spec.Files), ca, refuses)
	within.Egress, within.Doors, within.Place = d.cfg.Egress, doors, place
	for _, c := range d.cfg.Groups.Missing() {
		switch c {
		case "pids":
			within.Processes = l.Pids
		case "memory":
			within.Memory = l.Memory
		}
	}
	made, err := json.Marshal(within)
	if err != nil {
		return "", nil, err
	}
	serve := append(d.serve(spec.Files, sandboxRun+"/here", sandboxWorkspace, sandboxData, sandboxRun+"/state", sandboxRun+"/auth", sandboxHome, "/tmp", sandboxGateway), "--box", string(made))
	name, args := stand(bwrap, box.Command("/", append([]string{sandboxRun + "/thole"}, serve...)...))
	if uid == 0 {
		return name, args, nil
	}
	head := append([]string{"executor", "box", strconv.Itoa(uid), strconv.Itoa(1 + doors), strconv.Itoa(len(staged))}, staged...)
	return d.cfg.Binary, slices.Concat(head, []string{name}, args), nil
}

// inner is the agent's box as executord makes it: the same paths, without what the
// server keeps. What the system's directories and /etc show was laid for executord.
func inner(tools Tools, objects []string, ca string, refuses bool) wire.Box {
	box := sandbox.Agents(refuses).Kernel()
	if refuses { // what is older can bound no size
		box.Add("--size", strconv.Itoa(sharedMemory))
	}
	box.Add("--tmpfs", "/dev/shm", "--remount-ro", "/dev").System().Add("--ro-bind", "/etc", "/etc",
		"--ro-bind", sandboxRun+"/thole", sandboxRun+"/thole",
		"--ro-bind", sandboxTools, sandboxTools,
		"--ro-bind", sandboxRun+"/auth", sandboxRun+"/auth",
		"--bind", sandboxHome, sandboxHome,
		"--bind", "/tmp", "/tmp")
	for _, p := range tools.sorted() {
		box.Add("--ro-bind-try", p, p)
	}
	for _, p := range objects {
		box.Add("--ro-bind", p, p)
	}
	if ca != "" {
		box.Add("--ro-bind", ca, ca)
	}
	return wire.Box{Bwrap: sandboxRun + "/bwrap", Args: box.Args(), Init: sandboxRun + "/thole", CA: ca}
}

// stand puts a shell between us and bubblewrap, whose parent it is for as long as
// bubblewrap lives. All of bubblewrap ends with its parent (--die-with-parent), so
// that nothing inside outlives it, and the parent must not be us: executors do.
func stand(name string, args []string) (string, []string) {
	return "/bin/sh", append([]string{"-c", `"$@"; exit $?`, "sh", name}, args...)
}

// open is executord's command line without walls, which puts its agents into groups.
func (d *Driver) open(spec executor.Spec, groups []string) (string, []string) {
	id := spec.ID
	args := d.serve(spec.Files, d.dir(id, own, "here"), d.dir(id, "workspace"), d.dir(id, "data"), d.dir(id, "state"), d.dir(id, "auth"), d.dir(id, "home"), d.dir(id, "tmp"), filepath.Dir(d.cfg.Gateway))
	for _, dir := range groups {
		args = append(args, "--group", dir)
	}
	return d.cfg.Binary, args
}

func (d *Driver) serve(source thole.Source, here, files, data, state, auth, home, tmp, gateway string) []string {
	args := []string{"executor", "serve", "--listen", "fd:3", "--token-file", "-", "--while", here}
	switch {
	case source.InPlace():
		args = append(args, "--workspace", source.Dir, "--in-place")
	case source.Dir != "":
		args = append(args, "--workspace", files, "--dir", filepath.Join(files, source.Dir))
	default:
		args = append(args, "--workspace", files)
	}
	args = append(args, "--data", data, "--state", state, "--auth", auth, "--agent-home", home, "--tmp", tmp)
	if d.cfg.Note != "" {
		args = append(args, "--note", d.cfg.Note)
	}
	if d.cfg.Gateway != "" {
		args = append(args, "--gateway", filepath.Join(gateway, filepath.Base(d.cfg.Gateway)))
	}
	return args
}

// sorted lists the extra binds, parents first so that none hides another. What
// the system's directories show already stays as it is there: a link in them that
// leads elsewhere cannot be mounted over.
func (t Tools) sorted() []string {
	out := slices.DeleteFunc(slices.Concat(t.Readable, t.Paths, t.User.Show), sandbox.InSystem)
	slices.Sort(out)
	return slices.Compact(out)
}

// etcNames are what an agent needs of /etc to resolve names and trust certificates.
var etcNames = []string{"resolv.conf", "hosts", "host.conf", "nsswitch.conf", "localtime", "ssl", "pki",
	"ca-certificates", "os-release", "lsb-release", "debian_version", "timezone", "fonts", "perl", "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mime.types", "protocols", "services", "gitconfig"}

func etcBinds() (args []string) {
	for _, name := range etcNames {
		args = append(args, "--ro-bind-try", "/etc/"+name, "/etc/"+name)
	}
	return args
}

// path is where agents find programs: as the user does, then in the system's, the
// directories of the CLIs, and toolchains.
func (t Tools) path() string {
	dirs := slices.Clone(t.User.Path)
	for _, dir := range []string{"/usr/local/bin", "/usr/bin", "/bin"} {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for i, p := range slices.Concat(t.Readable, t.Paths) {
		st, err := os.Stat(p)
		if err == nil && !st.IsDir() {
			p = filepath.Dir(p)
		}
		if bin, err := os.Stat(filepath.Join(p, "bin")); err == nil && bin.IsDir() && i >= len(t.Readable) {
			p = filepath.Join(p, "bin") // of a toolchain
		}
		if !slices.Contains(dirs, p) {
			dirs = append(dirs, p)
		}
	}
	return strings.Join(dirs, ":")
}
