package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/internal/version"
)

// execHelper is the hidden command that gives a sandboxed program its argv[0].
const execHelper = "exec-as"

func newExecServer(env *Env) *cobra.Command {
	var (
		listen     string
		concurrent int
		auth       func() (*transport.Auth, error)
		remote     executorFlags
	)
	cmd := &cobra.Command{
		Use:   "exec-server",
		Short: "Run processes and serve files for clients of the exec-server protocol",
		Long: "Serves the exec-server protocol, which Codex speaks through CODEX_EXEC_SERVER_URL and environments.toml.\n" +
			"The first line on standard output is the bound address. Every client that connects runs programs as this user.\n" +
			"With --remote it listens nowhere: it connects to a relay (thole relay serve), and clients reach it through that.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if concurrent < 1 {
				return thole.Errorf(thole.CodeInvalid, "--concurrent-requests must be at least 1")
			}
			if err := remote.check(cmd); err != nil {
				return err
			}
			addr, err := transport.ParseListen(listen)
			if err != nil {
				return err
			}
			a, err := auth()
			if err != nil {
				return err
			}
			if remote.base != "" {
				if cmd.Flags().Changed("listen") || cmd.Flags().Changed("ws-auth") {
					return thole.Errorf(thole.CodeInvalid, "--remote excludes --listen and --ws-auth: it listens nowhere, and the relay knows who may connect")
				}
				srv := execserver.New(execserver.Config{
					Version: version.Codex, ConcurrentRequests: concurrent, Helper: selfHelper(), Own: ownFiles(env, cmd, transport.Address{}, remote.own()...),
				})
				defer srv.Close()
				return remote.serve(cmd.Context(), env, "every client with a token of the relay runs programs as this user",
					func(ctx context.Context, s jsonrpc.Stream) { _ = srv.Serve(ctx, s) })
			}
			srv := execserver.New(execserver.Config{
				Version: version.Codex, ConcurrentRequests: concurrent, Helper: selfHelper(), Own: ownFiles(env, cmd, addr),
			})
			defer srv.Close()
			if addr.Scheme == transport.Stdio {
				if err := a.Permit(addr); err != nil {
					return err
				}
				return serveStdio(cmd.Context(), env, srv)
			}
			l, err := transport.Listen(addr, a)
			if err != nil {
				return err
			}
			putln(env.Out, boundURL(addr, l.Addr().String()))
			return ws.NewServer(ws.Options{Auth: a, Path: "/", Health: []string{"/readyz"}, PingEvery: 30 * time.Second},
				func(ctx context.Context, s jsonrpc.Stream) { _ = srv.Serve(ctx, s) }).Serve(cmd.Context(), execserver.LimitFrames(l))
		},
	}
	auth = wsAuth(cmd)
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "ws://127.0.0.1:0", "ws://IP:PORT, unix://PATH or stdio")
	remote.add(cmd)
	f.IntVar(&concurrent, "concurrent-requests", 1, "file requests of one connection that run at once; 1 keeps arrival order")
	cmd.AddCommand(newExecServerForward(env), newExecServerConnect(env))
	return cmd
}

// ownFiles are what a sandboxed program could use to become an unsandboxed client
// of this server, or of thole's.
func ownFiles(env *Env, cmd *cobra.Command, addr transport.Address, more ...string) (own []string) {
	own = append(own, more...)
	if home, err := env.home(); err == nil {
		own = append(own, home)
	}
	for _, flag := range []string{"ws-token-file", "ws-shared-secret-file"} {
		if path, err := cmd.Flags().GetString(flag); err == nil && path != "" {
			own = append(own, path)
		}
	}
	if addr.Scheme == transport.Unix {
		own = append(own, addr.Path)
	}
	for i, path := range own {
		if abs, err := filepath.Abs(path); err == nil {
			own[i] = abs
		}
	}
	return own
}

// serveStdio serves the one connection of a pipe; its end ends everything.
func serveStdio(ctx context.Context, env *Env, srv *execserver.Server) error {
	err := srv.Serve(ctx, env.stdio())
	if ctx.Err() != nil || errors.Is(err, syscall.EPIPE) {
		return nil //nolint:nilerr // the end that was asked for, or the client's
	}
	return err
}

func boundURL(a transport.Address, bound string) string {
	if a.Scheme == transport.Unix {
		return "unix://" + bound
	}
	return "ws://" + bound
}

func selfHelper() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, execHelper}
}

func newExecAs(*Env) *cobra.Command {
	return &cobra.Command{
		Use: execHelper + " ARG0 PROGRAM [ARG...]", Hidden: true, DisableFlagParsing: true, Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			program := args[1]
			if !strings.Contains(program, "/") {
				return thole.Errorf(thole.CodeInvalid, "%s: the program must be a path", execHelper)
			}
			return syscall.Exec(program, append([]string{args[0]}, args[2:]...), os.Environ())
		},
	}
}
