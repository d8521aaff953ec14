package cli

import (
	"context"
	"os"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
)

// home resolves --home, THOLE_HOME and the default.
func (e *Env) home() (string, error) { return config.HomeDir(e.Home, os.Getenv) }

// ask calls the process that owns the home, starting it if needed.
func (e *Env) ask(ctx context.Context, method string, params, result any) error {
	home, err := e.home()
	if err != nil {
		return err
	}
	return (&daemonclient.Client{Home: home}).Call(ctx, method, params, result)
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
