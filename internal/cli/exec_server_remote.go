package cli

import (
	"context"
	"io"
	"log/slog"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/relay"
	"github.com/tholehq/thole/internal/transport/ws"
	wire "github.com/tholehq/thole/protocol/relay"
)

// forwardDial is how long the destination of a forwarded stream may take to answer.
const forwardDial = 10 * time.Second

// executorFlags are those of commands that serve an environment at a relay.
type executorFlags struct {
	remoteFlags
	allow       []string
	name        string
	kind        string
	stdinEnds   bool
	agentID     bool
	signedByAWS bool
}

func (f *executorFlags) add(cmd *cobra.Command) {
	f.remoteFlags.add(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&f.credentialStdin, "executor-credential-stdin", false, "read tokens from standard input, one JSON object per line; its end ends the server")
	fl.StringSliceVar(&f.allow, "allow-harness", nil, "fingerprint of a key that may connect; without any, every key that the relay vouches for")
	fl.StringVar(&f.name, "name", "", "a name for this executor, for its log")
	fl.BoolVar(&f.stdinEnds, "exit-on-stdin-close", false, "end when standard input is closed")
	fl.StringVar(&f.kind, "remote-transport", "noise", "noise; no other is supported")
	fl.BoolVar(&f.agentID, "use-agent-identity-auth", false, "")
	fl.BoolVar(&f.signedByAWS, "aws-sigv4", false, "")
	_ = fl.MarkHidden("use-agent-identity-auth")
	_ = fl.MarkHidden("aws-sigv4")
	exclude(cmd, "credential-file", "executor-credential-stdin")
	exclude(cmd, "exit-on-stdin-close", "executor-credential-stdin")
}

// remoteOnly are flags that mean something with --remote alone.
var remoteOnly = []string{"environment-id", "credential-file", "identity-file", "executor-credential-stdin", "allow-harness", "name", "exit-on-stdin-close", "remote-transport"}

// check refuses what cannot be kept.
func (f *executorFlags) check(cmd *cobra.Command) error {
	switch {
	case f.agentID || f.signedByAWS || f.kind == "direct":
		return thole.Errorf(thole.CodeUnsupported, "thole serves over Noise with a token: --remote-transport direct, --aws-sigv4 and --use-agent-identity-auth are Codex's own")
	case f.kind != "noise":
		return thole.Errorf(thole.CodeInvalid, "--remote-transport %q is unknown: it is noise", f.kind)
	}
	if f.base != "" {
		return nil
	}
	for _, name := range remoteOnly {
		if cmd.Flags().Changed(name) {
			return thole.Errorf(thole.CodeInvalid, "--%s needs --remote", name)
		}
	}
	return nil
}

// serve serves the environment until ctx ends. describe says what streams reach.
func (f *executorFlags) serve(ctx context.Context, env *Env, describe string, serve func(context.Context, jsonrpc.Stream)) error {
	ctx, reg, id, err := f.open(ctx, env.In)
	if err != nil {
		return err
	}
	allowed, err := fingerprints(f.allow)
	if err != nil {
		return err
	}
	if f.stdinEnds {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		go func() { // nothing wakes a reader of stdin: it is not waited for
			defer cancel()
			_, _ = io.Copy(io.Discard, env.In)
		}()
	}
	log := slog.New(slog.NewTextHandler(env.Err, nil))
	if f.name != "" {
		log = log.With("executor", f.name)
	}
	ready := false
	e := &relay.Executor{Registry: reg, Identity: id, Harnesses: allowed, Serve: serve, Log: log, OnReady: func(r wire.Registration) {
		if ready {
			log.Info("connected to the relay again")
			return
		}
		ready = true
		putf(env.Out, "environment %s at %s\nkey %s\n", r.EnvironmentID, f.base, id.Public().Fingerprint())
		putf(env.Err, "%s\n", describe)
	}}
	return e.Run(ctx)
}

func newExecServerForward(env *Env) *cobra.Command {
	var f executorFlags
	var to string
	cmd := &cobra.Command{
		Use:   "forward --connect ws://HOST:PORT --remote URL --environment-id ID",
		Short: "Serve an exec-server that listens elsewhere through a relay",
		Long: "Connects to a relay as exec-server --remote does, and each stream that a client opens to another exec-server, which\n" +
			"owns sessions and processes. Messages pass unread.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if to == "" || f.base == "" {
				return thole.Errorf(thole.CodeInvalid, "forward needs --connect and --remote")
			}
			if u, err := url.Parse(to); err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
				return thole.Errorf(thole.CodeInvalid, "invalid --connect %q: it is ws://HOST:PORT", to)
			}
			return f.serve(cmd.Context(), env, "every client with a token of the relay reaches "+to, func(ctx context.Context, s jsonrpc.Stream) {
				dctx, cancel := context.WithTimeout(ctx, forwardDial)
				dest, err := ws.Dial(dctx, to, ws.DialOptions{Limit: ws.DefaultLimit})
				cancel()
				if err != nil {
					putf(env.Err, "%v\n", err)
					return
				}
				relay.Pipe(ctx, s, dest)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&to, "connect", "", "ws:// address of the exec-server")
	return cmd
}
