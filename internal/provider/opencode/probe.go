package opencode

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
)

type version [3]int

func parseVersion(s string) (version, bool) {
	var v version
	parts := strings.SplitN(strings.TrimSpace(s), ".", 3)
	if len(parts) != 3 {
		return v, false
	}
	for i, p := range parts {
		p, _, _ = strings.Cut(p, "-")
		n, err := strconv.Atoi(p)
		if err != nil {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

// Probe inspects the installed CLI in a home of its own. The driver was proven
// with one version; others of the same major and minor number are taken as alike,
// and a newer one must answer.
func (p *Provider) Probe(ctx context.Context) provider.Info {
	info := provider.Info{Name: name, Title: title, Pinned: pinned, Profiles: provider.Profiles(name), Capabilities: capabilities(false)}
	binary, err := find(p.cfg.Binary)
	if err != nil {
		info.Problem, info.Fix = err.Error(), install
		return info
	}
	info.Binary = binary
	home, err := os.MkdirTemp("", "thole-probe-")
	if err != nil {
		info.Problem = err.Error()
		return info
	}
	defer os.RemoveAll(home)
	if info.Version, err = p.version(ctx, binary, home); err != nil {
		info.Problem, info.Fix = err.Error(), install
		return info
	}
	v, ok := parseVersion(info.Version)
	want, _ := parseVersion(pinned)
	if !ok {
		info.Problem, info.Fix = fmt.Sprintf("%s does not say its version: %q", binary, info.Version), install
		return info
	}
	info.Available = true
	proven := v[0] == want[0] && v[1] == want[1]
	if !proven {
		info.Problem, info.Fix = "version "+info.Version+" was not tested", install
		if older := v[0] < want[0] || v[0] == want[0] && v[1] < want[1]; !older {
			proven = p.answers(ctx, binary, home, &info)
		}
	}
	info.Capabilities = capabilities(proven)
	return info
}

// stamp tells one file from another that took its place.
type stamp struct {
	path string
	size int64
	time time.Time
}

// version asks a binary once: the CLI needs a second of CPU to say it.
func (p *Provider) version(ctx context.Context, binary, home string) (string, error) {
	file, err := os.Stat(binary)
	if err != nil {
		return "", err
	}
	key := stamp{binary, file.Size(), file.ModTime()}
	p.mu.Lock()
	said, ok := p.known[key]
	p.mu.Unlock()
	if ok {
		return said, nil
	}
	ctx, cancel := p.cfg.bound(ctx)
	defer cancel()
	if said, err = versionOf(ctx, binary, home); err != nil {
		return "", err
	}
	p.mu.Lock()
	p.known = map[stamp]string{key: said}
	p.mu.Unlock()
	return said, nil
}

func versionOf(ctx context.Context, binary, home string) (string, error) {
	env := map[string]string{"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
	for _, k := range []string{"XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"} {
		env[k] = home
	}
	proc, err := process.Start(process.Spec{Path: binary, Args: []string{"--version"}, Dir: home, Env: env})
	if err != nil {
		return "", err
	}
	defer proc.Kill()
	stop := context.AfterFunc(ctx, proc.Kill)
	defer stop()
	line, _ := process.NewLines(proc.Stdout).Next()
	out := strings.TrimSpace(string(line))
	proc.Stdout.Close()
	if err := proc.Wait(ctx); err != nil || out == "" {
		return "", fmt.Errorf("opencode --version: %s", proc.Diagnosis())
	}
	return out, nil
}

// answers starts a server of an unknown version and asks it for what the driver
// needs, without a model call.
func (p *Provider) answers(ctx context.Context, binary, home string, info *provider.Info) bool {
	s := newSession(p.cfg, binary, provider.SessionConfig{Dir: home, Data: home, Auth: home, Env: map[string]string{
		"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "OPENCODE_DISABLE_MODELS_FETCH": "1",
	}})
	defer s.Close()
	if err := s.open(ctx); err != nil {
		info.Problem += "; " + err.Error()
		return false
	}
	return s.agents["build"] && s.agents["plan"]
}

// capabilities are what the server can do; proven is false for a version that
// was not tested and did not answer.
func capabilities(proven bool) provider.Capabilities {
	c := provider.Validated
	if !proven {
		c = provider.Unknown
	}
	out := provider.Capabilities{Resume: c, Fork: c, Steer: c, HumanLoop: c, ToolApproval: c, TodoStream: c, PlanMode: c, Usage: c, Cost: c,
		AskSurvives: provider.Unavailable, ToolInputFlow: provider.Unavailable,
		Notes: map[string]string{
			"ask_survives_restart": "a stopped server forgets its questions; the answer is sent as a new message",
			"tool_input_stream":    "a tool's input is told when it is complete",
			"cost":                 "known for models that have a price in the configuration",
		}}
	if !proven {
		out.Notes["version"] = "not tested with this version; install " + pinned
	}
	return out
}
