//go:build linux

package execserver

import (
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/exec"
)

// describe says what this executor is. Capabilities name only what is there;
// shell snapshots, capability discovery and the managed network are not.
func describe(cfg Config) *exec.EnvironmentInfo {
	info := &exec.EnvironmentInfo{
		Shell: shell(cfg.Environ), ExecutorVersion: cfg.Version, PlatformOS: "linux",
		TemporaryDirectories: []string{}, TempDir: exec.FormatURI("/tmp"),
		Capabilities: &exec.Capabilities{
			HTTPHeaderEnvVars: true, SandboxedStreaming: true, FileWriteStreaming: true,
			FSWatchMissing: true, ProcessResize: true, StdinClose: true, FSWatch: true,
		},
	}
	if cwd, err := os.Getwd(); err == nil {
		uri := exec.FormatURI(cwd)
		info.Cwd = &uri
	}
	if home := lookup(cfg.Environ, "HOME"); filepath.IsAbs(home) {
		uri := exec.FormatURI(home)
		info.UserHomeDir = &uri
	}
	if tmp := lookup(cfg.Environ, "TMPDIR"); filepath.IsAbs(tmp) {
		info.TempDir = exec.FormatURI(tmp)
		info.TemporaryDirectories = []string{info.TempDir}
	}
	return info
}

// shell is the first of: $SHELL, the usual places.
func shell(env []string) exec.Shell {
	for _, path := range []string{lookup(env, "SHELL"), "/bin/bash", "/usr/bin/bash", "/bin/sh"} {
		if st, err := os.Stat(path); err == nil && filepath.IsAbs(path) && st.Mode()&0o111 != 0 {
			return exec.Shell{Name: filepath.Base(path), Path: path}
		}
	}
	return exec.Shell{Name: "sh", Path: "/bin/sh"}
}

// readConfig answers environmentConfig/read. The executor has no configuration
// of its own to contribute, so there are never layers.
func (c *conn) readConfig(raw json.RawMessage) (any, error) {
	var p exec.ConfigReadParams
	if e := decode(raw, &p); e != nil {
		return nil, e
	}
	if _, err := nativePath(p.Cwd); err != nil {
		return nil, err
	}
	if len(p.ConfigPaths)+len(p.RequirementsPaths) == 0 {
		return nil, jsonrpc.Errorf(exec.CodeInvalidParams, "at least one config or requirements path is required")
	}
	for _, path := range append(p.ConfigPaths, p.RequirementsPaths...) {
		if len(path) == 0 {
			return nil, jsonrpc.Errorf(exec.CodeInvalidParams, "config paths must not be empty")
		}
	}
	res := exec.ConfigReadResult{UserHomeDir: c.srv.info.UserHomeDir}
	res.Config.Layers, res.Requirements.Layers = []exec.ConfigLayer{}, []exec.ConfigLayer{}
	if name, err := os.Hostname(); err == nil {
		res.Hostname = &name
	}
	home := lookup(c.srv.cfg.Environ, "CODEX_HOME")
	if home == "" {
		base := lookup(c.srv.cfg.Environ, "HOME")
		if u, err := user.Current(); base == "" && err == nil {
			base = u.HomeDir
		}
		home = filepath.Join("/", base, ".codex")
	}
	res.CodexHomeDir = exec.FormatURI(home)
	return res, nil
}
