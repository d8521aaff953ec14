package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
)

// Versions the driver was proven with. Between and below them the protocol is
// taken as known or as unknown; above the pinned one a handshake decides.
var (
	oldest  = version{2, 1, 197}
	durable = version{2, 1, 325} // before it, an answer to a deferred question could be lost
	newest  = version{2, 1, 325}
)

type version [3]int

func (v version) less(w version) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] < w[i]
		}
	}
	return false
}

// parseVersion reads "2.1.325 (Claude Code)".
func parseVersion(s string) (version, bool) {
	word, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	var v version
	parts := strings.SplitN(word, ".", 3)
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

// Probe inspects the installed CLI in a home of its own.
func (p *Provider) Probe(ctx context.Context) provider.Info {
	info := provider.Info{Name: name, Title: title, Pinned: pinned, Profiles: provider.Profiles(name), Capabilities: capabilities(version{}, false)}
	binary, err := find(p.cfg.Binary)
	if err != nil {
		info.Problem, info.Fix = err.Error(), install
		return info
	}
	info.Binary = binary
	out, err := versionOf(ctx, binary)
	if err != nil {
		info.Problem, info.Fix = err.Error(), install
		return info
	}
	v, ok := parseVersion(out)
	info.Version, _, _ = strings.Cut(strings.TrimSpace(out), " ")
	if !ok {
		info.Problem, info.Fix = fmt.Sprintf("%s does not say its version: %q", binary, out), install
		return info
	}
	proven := !v.less(oldest)
	switch {
	case !proven:
		info.Problem, info.Fix = "version "+info.Version+" is older than the oldest one tested", install
	case newest.less(v):
		info.Problem, info.Fix = "version "+info.Version+" is newer than the newest one tested; it answers the control protocol", install
		proven = p.handshakes(ctx, binary, &info)
	}
	info.Available = true
	info.Capabilities = capabilities(v, proven)
	if info.Models == nil {
		info.Models = []provider.Model{{ID: "default", Title: "Default", Default: true}, {ID: "opus", Title: "Opus"}, {ID: "sonnet", Title: "Sonnet"}, {ID: "haiku", Title: "Haiku"}}
	}
	return info
}

func versionOf(ctx context.Context, binary string) (string, error) {
	home, err := os.MkdirTemp("", "thole-probe-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	proc, err := process.Start(process.Spec{Path: binary, Args: []string{"--version"}, Dir: home, Env: map[string]string{
		"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "CLAUDE_CONFIG_DIR": home, "DISABLE_AUTOUPDATER": "1",
	}})
	if err != nil {
		return "", err
	}
	defer proc.Kill()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, proc.Kill)
	defer stop()
	line, _ := process.NewLines(proc.Stdout).Next()
	out := string(line)
	proc.Stdout.Close()
	if err := proc.Wait(ctx); err != nil || out == "" {
		return "", fmt.Errorf("claude --version: %s", proc.Diagnosis())
	}
	return out, nil
}

// handshakes tries the control protocol of an unknown version, without a model
// call, and takes its models along.
func (p *Provider) handshakes(ctx context.Context, binary string, info *provider.Info) bool {
	home, err := os.MkdirTemp("", "thole-probe-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(home)
	s := newSession(p.cfg, binary, provider.SessionConfig{Dir: home, Data: home, Auth: home}, stance{mode: modeDefault})
	defer s.Close()
	if err := s.connect(ctx); err != nil {
		info.Problem = err.Error()
		return false
	}
	var init struct {
		Models []struct {
			Value       string   `json:"value"`
			DisplayName string   `json:"displayName"`
			Efforts     []string `json:"supportedEffortLevels"`
		} `json:"models"`
	}
	if json.Unmarshal(s.hello, &init) != nil || len(init.Models) == 0 {
		return false
	}
	for _, m := range init.Models {
		info.Models = append(info.Models, provider.Model{ID: m.Value, Title: m.DisplayName, Efforts: m.Efforts, Default: m.Value == "default"})
	}
	return true
}

// capabilities are what a version can do. proven is false for a version that is
// older than those we tested or failed the handshake.
func capabilities(v version, proven bool) provider.Capabilities {
	if !proven {
		u := provider.Unknown
		return provider.Capabilities{Resume: u, Fork: u, Steer: u, HumanLoop: u, AskSurvives: u, ToolApproval: u, TodoStream: u,
			PlanMode: u, Usage: u, Cost: u, ToolInputFlow: u,
			Notes: map[string]string{"version": "not tested with this version; install " + pinned}}
	}
	ok := provider.Validated
	c := provider.Capabilities{Resume: ok, Fork: ok, Steer: ok, HumanLoop: ok, AskSurvives: ok, ToolApproval: ok, TodoStream: ok,
		PlanMode: ok, Usage: ok, Cost: ok, ToolInputFlow: ok, Notes: map[string]string{
			"cost": "list prices built into the CLI; a gateway's own prices may differ",
		}}
	if v.less(durable) {
		c.AskSurvives = provider.Unavailable
		c.Notes["ask_survives_restart"] = "this version may lose the answer to a parked question; it is sent as a message instead"
	}
	return c
}
