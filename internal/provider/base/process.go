package base

import (
	"maps"
	"path/filepath"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
)

// Path is the PATH of a CLI whose session names none.
const Path = "/usr/local/bin:/usr/bin:/bin"

// Environ is the whole environment of a CLI: what the session gives over what the
// driver suggests, and over both what it insists on. Nothing is inherited.
func Environ(cfg provider.SessionConfig, suggested, fixed map[string]string) map[string]string {
	env := map[string]string{"PATH": Path, "HOME": filepath.Join(cfg.Data, "home")}
	for _, m := range []map[string]string{suggested, cfg.Env, fixed} {
		maps.Copy(env, m)
	}
	return env
}

// Launch makes the directories and starts the CLI in the workspace.
func (s *Session[C]) Launch(env map[string]string, args []string, dirs ...string) (*process.Process, error) {
	for _, dir := range append(dirs, s.Cfg.Auth) {
		if dir == "" {
			continue
		}
		f, err := OpenFiles(s.Cfg, dir)
		if err != nil {
			return nil, thole.Errorf(thole.CodeUnavailable, "%s: make the data directory: %w", s.Name, err)
		}
		f.Close()
	}
	return process.Start(process.Spec{Path: s.Binary, Args: args, Dir: s.Cfg.Dir, Env: env, Secrets: provider.Secrets(env), Box: s.Cfg.Box})
}

// Process is a CLI's process; a driver embeds it in what speaks to it.
type Process struct {
	*process.Process
	Read <-chan struct{} // closed when its last word was read; nil: nobody waits for that
}

// Dead reports whether it has ended.
func (p Process) Dead() bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// Close implements CLI.
func (p Process) Close(grace time.Duration) {
	if grace > 0 {
		p.Stop(grace)
	} else {
		p.Kill()
	}
	if p.Read != nil {
		<-p.Read
	}
}

// KeepOut keeps a login out of the data that is synced: what lies at path is removed,
// and linked says that the CLI finds the login that it was given
// through a link.
func KeepOut(cfg provider.SessionConfig, path string, linked bool) error {
	if cfg.Auth == "" || path == "" {
		return nil
	}
	if err := keepOut(cfg, path, linked); err != nil {
		return thole.Errorf(thole.CodeInternal, "keep a login outside of what is synced: %w", err)
	}
	return nil
}

func keepOut(cfg provider.SessionConfig, path string, linked bool) error {
	data, err := OpenFiles(cfg, filepath.Dir(path))
	if err != nil {
		return err
	}
	defer data.Close()
	name := filepath.Base(path)
	target := filepath.Join(cfg.Auth, name)
	if to, err := data.Readlink(name); linked && err == nil && to == target {
		return nil
	}
	if err := data.RemoveAll(name); err != nil || !linked {
		return err
	}
	return data.Symlink(target, name)
}
