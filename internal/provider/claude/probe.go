package claude

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// Versions the driver was proven with. Any other is asked what it has.
var (
	oldest = provider.Version{2, 1, 197}
	// durable keeps questions: before it, an answer to a deferred one could be lost.
	durable = provider.Version{2, 1, 325}
	newest  = provider.Version{2, 1, 325}
)

func proven(v provider.Version) bool { return !v.Less(oldest) && !newest.Less(v) }

// keeps says whether a deferred question survives its process.
func (p *Provider) keeps(ctx context.Context) bool { return p.Probe(ctx).Capabilities.AskSurvives.OK() }

func tested(v provider.Version, _ string) (provider.Capabilities, bool) {
	return measured(v), proven(v)
}

// measured is what a tested version can do, row by row of the conformance suite.
func measured(v provider.Version) provider.Capabilities {
	c := provider.All(provider.Validated)
	own := map[string]string{"cost": "list prices built into the CLI; a gateway's own prices may differ"}
	if v.Less(durable) {
		c.AskSurvives = provider.Unavailable
		own["ask_survives_restart"] = "this version may lose the answer to a parked question; it is sent as a message instead"
	}
	return provider.Degraded(c, own)
}

// findings is what an unknown version reported of itself.
type findings struct {
	help        string // what --help prints
	hooks       bool   // it took our hooks, which hold questions and approvals
	plan, usage bool   // it answered these control requests
	compact     bool   // it has the command
	parks       error  // why it does not keep a parked question
}

// capabilities of an unknown version. What was not tried stays unknown.
func (f findings) capabilities() provider.Capabilities {
	flag := func(names ...string) provider.Capability {
		for _, n := range names {
			if !strings.Contains(f.help, n) {
				return provider.Unavailable
			}
		}
		return provider.Validated
	}
	own := map[string]string{"todo_stream": "shown when the CLI reports one; whether it does was not tested with this version"}
	if f.parks != nil {
		own["ask_survives_restart"] = "the answer to a question is sent as a message after a restart: this version was tried: " + f.parks.Error()
	}
	return provider.Degraded(provider.Capabilities{
		Resume: flag("--resume", "--session-id"), Fork: flag("--fork-session"), Steer: flag("--replay-user-messages"),
		ToolInputFlow: flag("--include-partial-messages"), PlanMode: provider.Found(f.plan && flag("--permission-mode").OK()),
		HumanLoop: provider.Found(f.hooks), ToolApproval: provider.Found(f.hooks),
		Usage: provider.Found(f.usage), Cost: provider.Found(f.usage),
		AskSurvives: provider.Found(f.parks == nil), TodoStream: provider.Unknown, Compact: provider.Found(f.compact),
	}, own)
}

// ask tries the control protocol of an unknown version and reads its help.
func (p *Provider) ask(ctx context.Context, info *provider.Info) (err error) {
	var f findings
	if f.help, err = p.Provider.Binary.Say(ctx, info.Binary, "--help"); err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "thole-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	s := newSession(p.cfg, info.Binary, provider.SessionConfig{Dir: home, Data: home, Auth: home}, stance{mode: modeDefault}, nil)
	defer s.Close()
	c, err := s.Alive(ctx)
	if err != nil {
		return err
	}
	f.hooks = s.hello.Subtype == "success"
	for subtype, ok := range map[string]*bool{"get_usage": &f.usage, "set_permission_mode": &f.plan} {
		res, err := s.ask(ctx, c, subtype, map[string]any{"mode": modePlan})
		if err != nil {
			return err
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
	_ = strictjson.Unmarshal(s.hello.Response, &init)
	for _, c := range init.Commands {
		f.compact = f.compact || c.Name == "compact"
	}
	if len(init.Models) > 0 {
		info.Models = nil
	}
	for _, m := range init.Models {
		info.Models = append(info.Models, provider.Model{ID: m.Value, Title: m.DisplayName, Efforts: m.Efforts, Default: m.Value == "default"})
	}
	s.Close()
	f.parks = p.rehearse(ctx, info.Binary, filepath.Join(home, "rehearsal"))
	info.Capabilities = f.capabilities()
	return nil
}
