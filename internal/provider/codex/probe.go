package codex

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
)

// probeLimit bounds one look at the CLI.
const probeLimit = 20 * time.Second

// Probe implements provider.Provider.
func (p *Provider) Probe(ctx context.Context) provider.Info {
	info := provider.Info{Name: Name, Title: "Codex", Pinned: Pinned, Profiles: provider.Profiles(Name), Capabilities: provider.Degraded(provider.All(provider.Unknown), nil)}
	binary, err := find(p.path)
	if err != nil {
		info.Problem, info.Fix = err.Error(), install
		return info
	}
	info.Binary = binary
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	said, err := query(ctx, binary, "--version")
	if err != nil {
		info.Problem, info.Fix = "codex does not run: "+err.Error(), install
		return info
	}
	_, info.Version, _ = provider.ParseVersion(said)
	info.Available = true
	if info.Version != Pinned {
		info.Problem, info.Fix = "version "+info.Version+" was not tested; what it can do was asked of it", install
	}
	switch {
	case p.execOnly():
		info.Capabilities = execCapabilities()
	case info.Version == Pinned:
		info.Capabilities = measured()
	default:
		info.Capabilities, err = p.ask(ctx, binary, info.Version)
		if err == nil {
			return info
		}
		info.Problem = "codex " + info.Version + " has no usable app-server: " + err.Error()
		if help, herr := query(ctx, binary, "exec", "--help"); herr != nil || !strings.Contains(help, "--json") {
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

func query(ctx context.Context, binary string, args ...string) (string, error) {
	return provider.Query{Binary: binary, Args: args, Homes: []string{"CODEX_HOME"}}.Output(ctx)
}

// sandboxWorks runs a command in codex's own sandbox, once for each home:
// containers that deny user namespaces break it, and so does a home below the
// temporary directory, where codex refuses to put its helpers.
func (p *Provider) sandboxWorks(ctx context.Context, binary string, env map[string]string) bool {
	home := env["CODEX_HOME"]
	p.mu.Lock()
	works, known := p.sandbox[home]
	p.mu.Unlock()
	if known {
		return works
	}
	proc, err := process.Start(process.Spec{Path: binary, Args: []string{"sandbox", "true"}, Dir: home, Env: env})
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

// ask learns what an untested version can do from the protocol it describes.
func (p *Provider) ask(ctx context.Context, binary, version string) (provider.Capabilities, error) {
	p.mu.Lock()
	known, ok := p.probed[version]
	p.mu.Unlock()
	if ok {
		return known, nil
	}
	dir, err := os.MkdirTemp("", "thole-probe-")
	if err != nil {
		return known, err
	}
	defer os.RemoveAll(dir)
	if _, err := query(ctx, binary, "app-server", "generate-json-schema", "--experimental", "--out", dir); err != nil {
		return known, err
	}
	var schema strings.Builder
	for _, f := range []string{"ClientRequest", "ServerRequest", "ServerNotification"} {
		raw, err := os.ReadFile(filepath.Join(dir, f+".json"))
		if err != nil {
			return known, err
		}
		schema.Write(raw)
	}
	has := func(method string) bool { return strings.Contains(schema.String(), `"`+method+`"`) }
	for _, needed := range []string{"thread/start", "turn/start", "turn/interrupt", "item/started", "item/completed", "turn/completed"} {
		if !has(needed) {
			return known, fmt.Errorf("its protocol has no %s", needed)
		}
	}
	caps := capabilities(has)
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
