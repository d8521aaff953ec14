package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/execserver"
	"github.com/tholehq/thole/internal/executord"
	"github.com/tholehq/thole/internal/executord/watchdog"
	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/transport/ws"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/internal/workspace/side"
)

// ExecutordConfig places an executord.
type ExecutordConfig struct {
	Listen    string // "unix:PATH", "HOST:PORT" or "fd:N"
	TokenFile string // "-" is stdin
	While     string // a file that goes with the home; "" is TokenFile
	Note      string // said in every turn
	Dirs      executord.Dirs
	// InPlace: the workspace is a person's own directory, which is neither made nor synced.
	InPlace   bool
	Providers config.Providers
	// Box is how to make the agent's box; without one agents run next to executord.
	Box *wire.Box
	// Tools are what of the user's shell agents have.
	Tools wire.Tools
	// Gateway is the socket of the model gateway, "" for none.
	Gateway string
	// Groups are directories of control groups for agents that have no box.
	Groups []string
	// Orphan is executor.orphan_timeout; 0 is its default.
	Orphan time.Duration
	// Leased: the server of the home is not alone on its store, and only its lease counts.
	Leased bool
	Logger *slog.Logger
}

// parkTime bounds how long an executord that ends waits for its agents to take leave
// of a question.
const parkTime = 30 * time.Second

// leaseGrace is how much longer than its lease an executord may need to end, with its agents:
// it looks every few seconds, and takes leave of questions for leasedParkTime.
const (
	leaseGrace     = 20 * time.Second
	leasedParkTime = 5 * time.Second
)

// leasedVariable says to executord that only the lease counts.
const leasedVariable = "THOLE_EXECUTOR_LEASED"

// Leased reports whether a server's executord lives by its lease.
func Leased(getenv func(string) string) bool { return getenv(leasedVariable) != "" }

func leaseFile(gatewaySocket string) string {
	return filepath.Join(filepath.Dir(gatewaySocket), watchdog.LeaseName)
}

// ServeExecutord runs executord until ctx ends, then stops its turns and CLIs.
func ServeExecutord(ctx context.Context, cfg ExecutordConfig) error {
	token, err := readToken(cfg.TokenFile)
	if err != nil {
		return thole.Errorf(thole.CodeInvalid, "read token: %w", err)
	}
	synced, shown := cfg.Dirs.Workspace, ""
	if cfg.InPlace {
		synced, shown = "", cfg.Dirs.Workspace
	}
	for _, dir := range slices.DeleteFunc([]string{synced, cfg.Dirs.Data, cfg.Dirs.State, cfg.Dirs.Auth, cfg.Dirs.Home, cfg.Dirs.Tmp}, func(dir string) bool { return dir == "" }) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "prepare executor: %w", err)
		}
	}
	process.Confine(cfg.Groups...)
	if cfg.Box != nil {
		if err := ownTmp(filepath.Join(cfg.Dirs.State, "tmp")); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "prepare executor: %w", err)
		}
	}
	files := side.New(side.Config{Dir: synced, Data: cfg.Dirs.Data, State: filepath.Join(cfg.Dirs.State, "workspace"), Home: cfg.Dirs.Home, Shown: shown})
	defer files.Close()
	var processes *execserver.Server
	commands := ws.NewServer(ws.Options{}, func(ctx context.Context, s jsonrpc.Stream) { _ = processes.Serve(ctx, s) })
	defer commands.Stop()
	proxy, err := egressProxy(cfg.Box)
	if err != nil {
		return thole.Errorf(thole.CodeInvalid, "egress: %w", err)
	}
	var meter executord.Network
	if proxy != nil {
		defer proxy.Close()
		meter = proxy
	}
	server, err := executord.New(executord.Config{
		Dirs: cfg.Dirs, Token: strings.TrimSpace(string(token)), Providers: Providers(cfg.Providers),
		Version: version.Version, Logger: cfg.Logger, Note: cfg.Note, Workspace: side.Handler(files), Exec: commands, Commands: func() int { return processes.Running() }, Box: cfg.Box, Tools: cfg.Tools, Proxy: proxy, Network: meter, Gateway: cfg.Gateway,
		Rest: debug.FreeOSMemory, // there is one for each thread, and most of them wait
	})
	if err != nil {
		return err
	}
	defer server.Close()
	shape := execserver.Config{Version: version.Codex}
	if cfg.Box != nil {
		if _, err := server.Box(); err != nil {
			return err
		}
		shape.Kept = server.Guarded
		shape.Box, shape.Environ, shape.Own = server.Box, server.Environ(), []string{cfg.Dirs.State, cfg.Dirs.Auth, "/proc"}
	}
	processes = execserver.New(shape)
	defer processes.Close()
	ln, err := listenExecutord(cfg.Listen)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "listen: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, park := watchdog.New(cmp.Or(cfg.While, cfg.TokenFile), cfg.Orphan), parkTime
	if cfg.Leased {
		seen, park = seen.Leased(leaseFile(cfg.Gateway)), leasedParkTime
	}
	go seen.Run(ctx, server.Attended, func() {
		cfg.Logger.Info("no owner came; executord ends", "after", seen.After)
		parking, done := context.WithTimeout(ctx, park)
		server.Park(parking)
		done()
		cancel()
	})
	srv := &http.Server{Handler: seen.Note(server.Handler()), ReadHeaderTimeout: 10 * time.Second, ConnContext: ws.ConnContext}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// egressProxy is the way to the network of a box, which has no other.
func egressProxy(box *wire.Box) (*egress.Proxy, error) {
	if box == nil {
		return nil, nil
	}
	return egress.New(egress.Config{
		Policy: egress.Policy(box.Egress.Policy), Names: box.Egress.Names, Private: box.Egress.Private,
		Upstream: egress.Environment(os.Getenv),
	})
}

// ownTmp gives executord temporary files of its own: those of the agent it must not
// meet.
func ownTmp(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Setenv("TMPDIR", dir)
}

func readToken(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(os.Stdin, 1<<10))
	}
	return os.ReadFile(path)
}

func listenExecutord(listen string) (net.Listener, error) {
	if n, ok := strings.CutPrefix(listen, "fd:"); ok {
		fd, err := strconv.Atoi(n)
		if err != nil || fd < 3 {
			return nil, fmt.Errorf("invalid descriptor %q", listen)
		}
		f := os.NewFile(uintptr(fd), listen)
		defer f.Close() // what executord starts must not have it
		return net.FileListener(f)
	}
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
