package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/provider"
)

// Versions the driver was proven with. Any other is asked what it has.
var (
	oldest = provider.Version{2, 1, 197}
	// durable keeps questions: before it, an answer to a deferred one could be lost.
	durable = provider.Version{2, 1, 325}
	newest  = provider.Version{2, 1, 325}
)

// probeLimit bounds one look at the CLI.
const probeLimit = 20 * time.Second

func proven(v provider.Version) bool { return !v.Less(oldest) && !newest.Less(v) }

// keepsQuestions says whether a deferred question survives its process. Nothing
// but a turn shows it, so only a tested version is believed.
func keepsQuestions(v provider.Version) bool { return proven(v) && !v.Less(durable) }

// Probe inspects the installed CLI in a home of its own.
func (p *Provider) Probe(ctx context.Context) provider.Info {
	info := provider.Info{Name: name, Title: title, Pinned: pinned, Profiles: provider.Profiles(name),
		Capabilities: provider.Degraded(provider.All(provider.Unknown), nil),
		Models:       []provider.Model{{ID: "default", Title: "Default", Default: true}, {ID: "opus", Title: "Opus"}, {ID: "sonnet", Title: "Sonnet"}, {ID: "haiku", Title: "Haiku"}}}
	binary, err := find(p.cfg.Binary)
	if err != nil {
		info.Problem, info.Fix = err.Error(), install
		return info
	}
	info.Binary = binary
	said, err := query(ctx, binary, "--version")
	if err != nil {
		info.Problem, info.Fix = err.Error(), install
		return info
	}
	v, text, ok := provider.ParseVersion(said)
	if !ok {
		info.Problem, info.Fix = fmt.Sprintf("%s does not say its version: %q", binary, said), install
		return info
	}
	info.Version = text
	if proven(v) {
		info.Available, info.Capabilities = true, measured(v)
		return info
	}
	info.Problem, info.Fix = "version "+text+" was not tested; what it can do was asked of it", install
	f, err := p.ask(ctx, binary)
	if err != nil {
		info.Problem = "version " + text + " was not tested and does not speak the control protocol: " + err.Error()
		return info
	}
	info.Available, info.Capabilities = true, f.capabilities()
	if len(f.models) > 0 {
		info.Models = f.models
	}
	return info
}

func query(ctx context.Context, binary string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	return provider.Query{Binary: binary, Args: args, Homes: []string{"CLAUDE_CONFIG_DIR"}, Env: map[string]string{"DISABLE_AUTOUPDATER": "1"}}.Output(ctx)
}

// measured is what a tested version can do, row by row of the conformance suite.
func measured(v provider.Version) provider.Capabilities {
	c := provider.All(provider.Validated)
	own := map[string]string{"cost": "list prices built into the CLI; a gateway's own prices may differ"}
	if !keepsQuestions(v) {
		c.AskSurvives = provider.Unavailable
		own["ask_survives_restart"] = "this version may lose the answer to a parked question; it is sent as a message instead"
	}
	return provider.Degraded(c, own)
}

// findings is what an unknown version told of itself.
type findings struct {
	help        string // what --help prints
	hooks       bool   // it took our hooks, which hold questions and approvals
	plan, usage bool   // it answered these control requests
	compact     bool   // it has the command
	models      []provider.Model
}

// capabilities of an unknown version. What only a turn would show stays unknown.
func (f findings) capabilities() provider.Capabilities {
	flag := func(names ...string) provider.Capability {
		for _, n := range names {
			if !strings.Contains(f.help, n) {
				return provider.Unavailable
			}
		}
		return provider.Validated
	}
	return provider.Degraded(provider.Capabilities{
		Resume: flag("--resume", "--session-id"), Fork: flag("--fork-session"), Steer: flag("--replay-user-messages"),
		ToolInputFlow: flag("--include-partial-messages"), PlanMode: provider.Found(f.plan && flag("--permission-mode").OK()),
		HumanLoop: provider.Found(f.hooks), ToolApproval: provider.Found(f.hooks),
		Usage: provider.Found(f.usage), Cost: provider.Found(f.usage),
		AskSurvives: provider.Unknown, TodoStream: provider.Unknown, Compact: provider.Found(f.compact),
	}, map[string]string{"todo_stream": "shown when the CLI tells one; whether it does was not tested with this version"})
}

// ask tries the control protocol of an unknown version and reads its help,
// without a model call.
func (p *Provider) ask(ctx context.Context, binary string) (f findings, err error) {
	if f.help, err = query(ctx, binary, "--help"); err != nil {
		return f, err
	}
	home, err := os.MkdirTemp("", "thole-probe-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(home)
	s := newSession(p.cfg, binary, provider.SessionConfig{Dir: home, Data: home, Auth: home}, stance{mode: modeDefault})
	defer s.Close()
	if err := s.connect(ctx); err != nil {
		return f, err
	}
	f.hooks = s.hello.Subtype == "success"
	for subtype, ok := range map[string]*bool{"get_usage": &f.usage, "set_permission_mode": &f.plan} {
		res, err := s.ask(ctx, s.conn, subtype, map[string]any{"mode": modePlan})
		if err != nil {
			return f, err
		}
		*ok = res.Subtype == "success"
	}
	var init struct {
		Commands []struct {
			Name string `json:"name"`
		} `json:"commands"`
		Models []struct {
			Value       string   `json:"value"`
			DisplayName string   `json:"displayName"`
			Efforts     []string `json:"supportedEffortLevels"`
		} `json:"models"`
	}
	_ = json.Unmarshal(s.hello.Response, &init)
	for _, c := range init.Commands {
		f.compact = f.compact || c.Name == "compact"
	}
	for _, m := range init.Models {
		f.models = append(f.models, provider.Model{ID: m.Value, Title: m.DisplayName, Efforts: m.Efforts, Default: m.Value == "default"})
	}
	return f, nil
}
