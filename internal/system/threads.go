package system

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/doctor"
	"github.com/tholehq/thole/internal/executor"
	"github.com/tholehq/thole/internal/executor/local"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/provider/registry"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/toolchain"
)

// policies are what the configuration says of asks that nobody answers.
func policies(a config.Asks) thread.Policies {
	input := thread.AskPolicy{Wait: a.InputTimeout, OnTimeout: thread.TimeoutFail}
	switch a.InputPolicy {
	case "wait":
		input = thread.AskPolicy{}
	case "default":
		input.OnTimeout, input.Default = thread.TimeoutDefault, &event.Answer{Message: a.DefaultReply}
	}
	out := thread.Policies{event.AskInput: input}
	for _, kind := range []event.AskKind{event.AskCommand, event.AskFileChange, event.AskPermissions, event.AskPlan} {
		out[kind] = askPolicy(a.ApprovalTimeout, a.ApprovalPolicy)
	}
	for kind, rule := range a.Kinds() {
		if wait, policy, err := config.AskRule(rule); err == nil { // checked when it was read
			out[event.AskKind(kind)] = askPolicy(wait, policy)
		}
	}
	return out
}

func askPolicy(wait time.Duration, policy string) thread.AskPolicy {
	switch policy {
	case "wait":
		return thread.AskPolicy{}
	case "deny":
		return thread.AskPolicy{Wait: wait, OnTimeout: thread.TimeoutDefault, Default: &event.Answer{Decision: event.DecisionDeny, Message: "nobody answered in time"}}
	case "cancel":
		return thread.AskPolicy{Wait: wait, OnTimeout: thread.TimeoutCancel}
	}
	return thread.AskPolicy{Wait: wait, OnTimeout: thread.TimeoutFail}
}

// localDriver makes executors in the home.
func localDriver(cfg *config.Config, self string, leased bool, agents *registry.Registry, box func(context.Context) (string, error), shell func() toolchain.Plan, sample bool, log *slog.Logger) (*local.Driver, error) {
	if note := doctor.Unwalled(cfg.Executor); note != "" {
		log.Warn(note)
	}
	if f := doctor.CheckLimits(cfg.Executor); !f.OK {
		log.Warn("executors run without some limits", "err", f.Problem)
	}
	root := filepath.Join(cfg.Home, "x")
	if err := local.CheckRoot(root); err != nil {
		return nil, err
	}
	return local.New(local.Config{
		Root: root, Home: cfg.Home, Binary: self, Box: box, Note: doctor.Unwalled(cfg.Executor), UIDBase: cfg.Executor.UIDBase,
		Groups: doctor.Groups(cfg.Executor), Egress: wire.Egress{Policy: cfg.Egress.Policy, Names: cfg.Egress.Names, Private: cfg.Egress.Private}, CA: cfg.Egress.CAFile,
		Gateway: GatewaySocket(cfg.Home), SetupTimeout: cfg.Executor.SetupTimeout,
		Tools: func() local.Tools {
			env := located(agents)
			env[config.Variable("executor.orphan_timeout")] = cfg.Executor.OrphanTimeout.String()
			if leased {
				env[leasedVariable] = "1"
			}
			if sample {
				env[sampleVariable] = "1"
			}
			for _, name := range toolchain.Names(toolchain.Proxy) {
				if v := os.Getenv(name); v != "" {
					env[name] = v // ours goes through the user's
				}
			}
			return local.Tools{Readable: agents.Binaries(), Paths: cfg.Executor.Paths, User: shell(), Env: env}
		},
	}), nil
}

// shellAge is how long a look at the owner's shell counts: directories are searched for
// keys in it, and executors may start several times a second.
const shellAge = time.Minute

// ownShell looks at the owner's shell for what agents have of it.
func ownShell(cfg *config.Config) func() toolchain.Plan {
	var mu sync.Mutex
	var plan toolchain.Plan
	var looked time.Time
	return func() toolchain.Plan {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(looked) > shellAge {
			plan, looked = doctor.Shell(context.Background(), cfg), time.Now()
		}
		return plan
	}
}

// isolation finds how executors are kept apart: bubblewrap's path, nil where a
// person typed that they are not. It begins to look while the rest starts, and looks
// again at every start of an executor until it was found. That no turn can run is said at
// once: who starts thole would otherwise learn it from the first turn.
func isolation(ctx context.Context, cfg config.Executor, log *slog.Logger) func(context.Context) (string, error) {
	if doctor.Unwalled(cfg) != "" {
		return nil
	}
	var mu sync.Mutex
	var path string
	find := func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if path != "" {
			return path, nil
		}
		found, err := local.FindBwrap(ctx, cfg.UIDBase)
		if err == nil {
			path = found
		}
		return path, err
	}
	go func() {
		if _, err := find(ctx); err != nil {
			log.Warn("no turn can run", "err", fmt.Errorf("%w; try: %s", err, thole.HintOf(err)))
		}
	}()
	return find
}

func room(cfg config.Executor) executor.Limits {
	return executor.Limits{CPUs: cfg.CPUs, Memory: int64(cfg.MemoryMB) << 20, Pids: cfg.Pids, Disk: int64(cfg.DiskMB) << 20}
}

// located gives executord where the CLIs are, in the variables of the configuration.
func located(agents *registry.Registry) map[string]string {
	env := map[string]string{}
	for name, path := range agents.Paths() {
		env[config.Variable("providers."+name)] = path
	}
	return env
}
