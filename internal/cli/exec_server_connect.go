package cli

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/execclient"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/relay"
	"github.com/tholehq/thole/internal/transport"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/internal/unguarded"
	"github.com/tholehq/thole/protocol/exec"
)

func newExecServerConnect(env *Env) *cobra.Command {
	var f remoteFlags
	var pinned, listen string
	var auth func() (*transport.Auth, error)
	cmd := &cobra.Command{
		Use:   "connect --remote URL --environment-id ID [-- COMMAND [ARG...]]",
		Short: "Reach an exec-server through a relay: run a command there, or be its address here",
		Long: "With a command, runs it there and exits with its code. Without one, speaks the exec-server protocol on --listen\n" +
			"and carries each connection to the executor, so that a client which knows no relay can use it, with the executor's\n" +
			"key pinned by --executor-key. A ws:// listener asks for a token, as that of exec-server does.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.base == "" {
				return thole.Errorf(thole.CodeInvalid, "connect needs --remote")
			}
			if len(args) > 0 && (cmd.Flags().Changed("listen") || cmd.Flags().Changed("ws-auth")) {
				return thole.Errorf(thole.CodeInvalid, "a command runs there and listens nowhere: --listen and --ws-auth are for connect without one")
			}
			addr, a, err := parseCarry(listen, auth)
			if err != nil {
				return err
			}
			ctx, reg, id, err := f.open(cmd.Context(), env.In)
			if err != nil {
				return err
			}
			d := &relay.Dialer{Registry: reg, Identity: id}
			if pinned != "" {
				keys, err := fingerprints([]string{pinned})
				if err != nil {
					return err
				}
				d.Executor = keys[0]
			}
			putf(env.Err, "key %s\n", id.Public().Fingerprint())
			if len(args) > 0 {
				return runThere(ctx, env, d, args)
			}
			return carryThere(ctx, env, d, addr, a)
		},
	}
	f.add(cmd)
	auth = wsAuth(cmd)
	cmd.Flags().StringVar(&pinned, "executor-key", "", "fingerprint of the executor's key, as it prints at its start; without it the relay is believed")
	cmd.Flags().StringVar(&listen, "listen", "stdio", "stdio, unix://PATH or ws://127.0.0.1:PORT, without a command")
	return cmd
}

// runThere runs one command without input.
func runThere(ctx context.Context, env *Env, d *relay.Dialer, argv []string) error {
	pace := &pacer{less: make(chan struct{}, 1)}
	c, err := execclient.Open(ctx, execclient.Options{Dial: pace.dial(d.Dial), CallFor: 25 * time.Second})
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	cwd := exec.FormatURI("/")
	if info := c.Info(); info != nil && info.Cwd != nil {
		cwd = *info.Cwd
	}
	p, err := c.Start(ctx, exec.StartParams{
		ProcessID: uuid.NewString(), Argv: argv, Cwd: cwd, Env: map[string]string{},
		EnvPolicy: &exec.EnvPolicy{Inherit: "all", Exclude: []string{}, Set: map[string]string{}, IncludeOnly: []string{}},
	})
	if err != nil {
		return err
	}
	code := 0
	for {
		ev, err := p.Next(ctx)
		if err != nil {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			_, _ = p.Terminate(stop)
			cancel()
			return err
		}
		switch ev.Kind {
		case execclient.Output:
			to := env.rawOut
			if ev.Stream == "stderr" {
				to = env.rawErr
			}
			if _, err := to.Write(ev.Data); err != nil {
				return err
			}
			pace.consumed()
		case execclient.Lost:
			putf(env.Err, "%d pieces of output were lost\n", ev.Count)
		case execclient.Exited:
			code = ev.ExitCode
		case execclient.Failed:
			return thole.Errorf(thole.CodeUnavailable, "%w", ev.Err)
		case execclient.Closed:
			if code != 0 {
				return ExitError(code)
			}
			return nil
		}
	}
}

// parseCarry reads where connect listens and who may connect there: each client runs
// programs on the executor.
func parseCarry(listen string, auth func() (*transport.Auth, error)) (transport.Address, *transport.Auth, error) {
	addr, err := transport.ParseListen(listen)
	if err != nil {
		return addr, nil, err
	}
	a, err := auth()
	switch {
	case err != nil || unguarded.Build:
		return addr, a, err
	case addr.Scheme == transport.WS && !addr.TCP.Addr().Unmap().IsLoopback():
		return addr, nil, thole.Errorf(thole.CodeForbidden, "refusing to listen on %s: what the relay carries encrypted would leave this machine in the clear", addr).WithHint("use a loopback address or unix://PATH")
	}
	return addr, a, a.Permit(addr)
}

// carryThere carries connections. Each gets a stream of its own; that it was lost
// reaches the client, which resumes over another.
func carryThere(ctx context.Context, env *Env, d *relay.Dialer, addr transport.Address, auth *transport.Auth) error {
	if addr.Scheme == transport.Stdio {
		far, err := d.Dial(ctx)
		if err != nil {
			return err
		}
		near := env.stdio()
		defer context.AfterFunc(ctx, func() { _ = far.Close("") })()
		ended := make(chan error, 2)
		go func() { ended <- pipe(near, far) }() // nothing wakes a reader of stdin: it is not waited for
		go func() { ended <- pipe(far, near) }()
		<-ended
		return far.Close("")
	}
	l, err := transport.Listen(addr, auth)
	if err != nil {
		return err
	}
	putln(env.Out, boundURL(addr, l.Addr().String()))
	err = ws.NewServer(ws.Options{Auth: auth, Path: "/", Health: []string{"/readyz"}}, func(ctx context.Context, near jsonrpc.Stream) {
		far, err := d.Dial(ctx)
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				putf(env.Err, "%v\n", err)
			}
			_ = near.Close("the executor cannot be reached")
			return
		}
		relay.Pipe(ctx, near, far)
	}).Serve(ctx, l)
	return err
}
