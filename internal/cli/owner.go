package cli

import (
	"context"
	"os"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/version"
)

// home resolves --home, THOLE_HOME and the default. A misspelt variable is refused: the
// command would otherwise ask the owner of another home.
func (e *Env) home() (string, error) {
	if err := config.CheckEnviron(os.Environ()); err != nil {
		return "", err
	}
	return config.HomeDir(e.Home, os.Getenv)
}

// ask calls the team server, or the process that owns the home, starting it if needed.
func (e *Env) ask(ctx context.Context, method string, params, result any) error {
	if s, err := e.server(); err != nil {
		return err
	} else if s != nil {
		return s.ask(ctx, method, params, result)
	}
	home, err := e.home()
	if err != nil {
		return err
	}
	return (&daemonclient.Client{Home: home, Older: e.sayOlder}).Call(ctx, method, params, result)
}

// sayOlder says once that the owner is of an older version, and how to change that.
func (e *Env) sayOlder(st wire.Status) {
	if e.saidOlder || e.JSON || e.Quiet {
		return
	}
	e.saidOlder = true
	putf(e.Err, "thole: thole %s (pid %d) is version %s, this command is %s\n", st.Role, st.PID, st.Version, version.Version)
	putln(e.Err, "  try: stop it with Ctrl-C where it runs, or thole daemon stop, and start thole up again; as a service: thole service status says how to restart it")
}

// newRequest is an id that makes a repeated request recognisable.
func newRequest() string { return thole.NewID[string](time.Now()) }

// codexHome is the endpoint that Codex threads live at unless the user says
// otherwise: its real path, so that two spellings are one place.
func codexHome() (string, error) {
	dir := os.Getenv("CODEX_HOME")
	if dir == "" {
		h, err := os.UserHomeDir()
		if err != nil {
			return "", thole.Errorf(thole.CodeInvalid, "no home directory: %w", err).WithHint("pass --endpoint or set CODEX_HOME")
		}
		dir = filepath.Join(h, ".codex")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", thole.Errorf(thole.CodeInvalid, "CODEX_HOME: %w", err)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir, nil
}

// endpointFor is where threads of a target live by default.
func endpointFor(target, given string) (string, error) {
	if given != "" || thole.Target(target) == thole.TargetThole {
		return given, nil
	}
	return codexHome()
}
