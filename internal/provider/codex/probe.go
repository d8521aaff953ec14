package codex

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/transport/stdio"
)

// probeLimit bounds one look at the CLI.
const probeLimit = 20 * time.Second

// find resolves path, or codex on PATH, to a native binary.
func find(path string) string {
	if path == "" {
		var err error
		if path, err = exec.LookPath("codex"); err != nil {
			return ""
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || filepath.Ext(real) != ".js" {
		return path
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	platform := "codex-" + runtime.GOOS + "-" + arch
	pkg := filepath.Dir(filepath.Dir(real)) // …/@openai/codex
	for _, dir := range []string{pkg, filepath.Join(pkg, "node_modules", "@openai", platform), filepath.Join(filepath.Dir(pkg), platform)} {
		if found, _ := filepath.Glob(filepath.Join(dir, "vendor", "*", "bin", "codex")); len(found) > 0 {
			return found[0]
		}
	}
	return path
}

// Probe implements provider.Provider.
func (p *Provider) Probe(ctx context.Context) provider.Info {
	info := provider.Info{Name: Name, Title: "Codex", Binary: p.binary, Pinned: Pinned, Profiles: provider.Profiles(Name), Capabilities: unknown()}
	if err := p.check(); err != nil {
		info.Problem, info.Fix = "codex is not installed", install
		return info
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	out, err := p.output(ctx, "--version")
	if err != nil {
		info.Problem, info.Fix = "codex does not run: "+err.Error(), install
		return info
	}
	info.Version = versionIn(out)
	info.Available = true
	if info.Version != Pinned {
		info.Problem, info.Fix = "version "+info.Version+" was not tested; "+Pinned+" was", install
	}
	switch {
	case p.execOnly():
		info.Capabilities = execCapabilities()
	case info.Version == Pinned:
		info.Capabilities = measured()
	default:
		info.Capabilities, err = p.ask(ctx, info.Version)
		if err == nil {
			return info
		}
		info.Problem = "codex " + info.Version + " has no usable app-server: " + err.Error()
		if help, herr := p.output(ctx, "exec", "--help"); herr != nil || !strings.Contains(help, "--json") {
			info.Available = false
			return info
		}
		p.mu.Lock()
		p.exec = true
		p.mu.Unlock()
		info.Problem += "; falling back to codex exec"
		info.Capabilities = execCapabilities()
	}
	return info
}

// versionIn finds the version in what --version printed.
func versionIn(text string) string { return regexp.MustCompile(`\d+\.\d+\.\d+\S*`).FindString(text) }

// output runs codex in an empty home of its own.
func (p *Provider) output(ctx context.Context, args ...string) (string, error) {
	proc, done, err := p.scratch(args...)
	if err != nil {
		return "", err
	}
	defer done()
	stop := context.AfterFunc(ctx, proc.Kill)
	defer stop()
	proc.Stdin.Close()
	out, _ := io.ReadAll(io.LimitReader(proc.Stdout, 1<<20))
	if err := proc.Wait(ctx); err != nil {
		return "", errors.New(proc.Diagnosis())
	}
	return string(out), nil
}

// scratch starts codex with a home that is removed by done.
func (p *Provider) scratch(args ...string) (*process.Process, func(), error) {
	home, err := os.MkdirTemp("", "thole-codex-")
	if err != nil {
		return nil, nil, err
	}
	proc, err := process.Start(process.Spec{Path: p.binary, Args: args, Dir: home,
		Env: map[string]string{"HOME": home, "CODEX_HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin"}})
	if err != nil {
		os.RemoveAll(home)
		return nil, nil, err
	}
	return proc, func() {
		proc.Kill()
		proc.Stdout.Close()
		os.RemoveAll(home)
	}, nil
}

// sandboxWorks runs a command in codex's own sandbox, once for each home:
// containers that deny user namespaces break it, and so does a home below the
// temporary directory, where codex refuses to put its helpers.
func (p *Provider) sandboxWorks(ctx context.Context, env map[string]string) bool {
	home := env["CODEX_HOME"]
	p.mu.Lock()
	works, known := p.sandbox[home]
	p.mu.Unlock()
	if known {
		return works
	}
	proc, err := process.Start(process.Spec{Path: p.binary, Args: []string{"sandbox", "true"}, Dir: home, Env: env})
	if err != nil {
		return false
	}
	limit, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	proc.Stdin.Close()
	works = proc.Wait(limit) == nil
	proc.Kill()
	proc.Stdout.Close()
	if ctx.Err() == nil { // else the caller gave up and nothing was learnt
		p.mu.Lock()
		p.sandbox[home] = works
		p.mu.Unlock()
	}
	return works
}

// ask learns what an untested version can do from the server itself: it names all
// its methods when it is asked for one that does not exist.
func (p *Provider) ask(ctx context.Context, version string) (provider.Capabilities, error) {
	p.mu.Lock()
	known, ok := p.probed[version]
	p.mu.Unlock()
	if ok {
		return known, nil
	}
	proc, done, err := p.scratch(append(serverArgs(), "app-server")...)
	if err != nil {
		return unknown(), err
	}
	defer done()
	conn := jsonrpc.NewConn(stdio.New(proc.Stdout, proc.Stdin, 0), jsonrpc.Options{})
	served := make(chan struct{})
	go func() { defer close(served); _ = conn.Run(ctx) }()
	defer func() { conn.Close("probe done"); <-served }()
	err = conn.Call(ctx, "thole/probe", struct{}{}, nil)
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) {
		return unknown(), errors.New(proc.Diagnosis())
	}
	caps := capabilities(func(method string) bool { return strings.Contains(refused.Message, "`"+method+"`") })
	if !strings.Contains(refused.Message, "`turn/start`") {
		return unknown(), errors.New("it does not list its methods")
	}
	p.mu.Lock()
	p.probed[version] = caps
	p.mu.Unlock()
	return caps, nil
}

// serverArgs switch on the tools that codex hides by default and keep it quiet.
func serverArgs() []string {
	return []string{
		"-c", "tools.update_plan.enabled=true",
		"-c", "features.default_mode_request_user_input=true",
		// A snapshot of the shell holds the whole environment, keys included, in a file.
		"-c", "features.shell_snapshot=false",
		"-c", "suppress_unstable_features_warning=true",
		"-c", "check_for_update_on_startup=false",
		"-c", "analytics.enabled=false",
		"-c", "feedback.enabled=false",
	}
}
