package system

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/executord"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/internal/workspace"
)

// ExecutordConfig places an executord.
type ExecutordConfig struct {
	Listen    string // "unix:PATH" or "HOST:PORT"
	TokenFile string
	Dirs      executord.Dirs
	Providers config.Providers
	// Orphan is executor.orphan_timeout; 0 is its default.
	Orphan time.Duration
	Logger *slog.Logger
}

// parkTime bounds how long an executord that ends waits for its agents to take leave
// of a question.
const parkTime = 30 * time.Second

// ServeExecutord runs executord until ctx ends, then stops its turns and CLIs.
func ServeExecutord(ctx context.Context, cfg ExecutordConfig) error {
	token, err := os.ReadFile(cfg.TokenFile)
	if err != nil {
		return thole.Errorf(thole.CodeInvalid, "read token: %w", err)
	}
	for _, dir := range []string{cfg.Dirs.Workspace, cfg.Dirs.State, cfg.Dirs.Auth, cfg.Dirs.Home, cfg.Dirs.Tmp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "prepare executor: %w", err)
		}
	}
	files := workspace.NewLocal(workspace.LocalConfig{Dir: cfg.Dirs.Workspace, State: filepath.Join(cfg.Dirs.State, "workspace"), Home: cfg.Dirs.Home})
	defer files.Close()
	processes := execserver.New(execserver.Config{Version: version.Codex})
	defer processes.Close()
	commands := ws.NewServer(ws.Options{}, func(ctx context.Context, s jsonrpc.Stream) { _ = processes.Serve(ctx, s) })
	defer commands.Stop()
	server, err := executord.New(executord.Config{
		Dirs: cfg.Dirs, Token: strings.TrimSpace(string(token)), Providers: Providers(cfg.Providers),
		Version: version.Version, Logger: cfg.Logger, Workspace: workspace.Handler(files), Exec: commands,
	})
	if err != nil {
		return err
	}
	defer server.Close()
	ln, err := listenExecutord(cfg.Listen)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "listen: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := newWatchman(cfg.TokenFile, cfg.Orphan)
	go seen.run(ctx, server.Attended, func() {
		cfg.Logger.Info("no owner came; executord ends", "after", seen.after)
		parking, done := context.WithTimeout(ctx, parkTime)
		server.Park(parking)
		done()
		cancel()
	})
	srv := &http.Server{Handler: seen.note(server.Handler()), ReadHeaderTimeout: 10 * time.Second, ConnContext: ws.ConnContext}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func listenExecutord(listen string) (net.Listener, error) {
	path, ok := strings.CutPrefix(listen, "unix:")
	if !ok {
		return net.Listen("tcp", listen)
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return ln, os.Chmod(path, 0o600)
}
