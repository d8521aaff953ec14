package opencode

import (
	"bytes"
	"io/fs"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/base"
)

// refusePlugins refuses a turn when the workspace has plugins and its settings do not
// count: opencode runs them with the first prompt, whatever its settings say, and
// without a question.
func (s *session) refusePlugins() error {
	if !s.Cfg.NoProject {
		return nil
	}
	files, err := base.OpenFiles(s.Cfg, s.Cfg.Dir)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "opencode: look for plugins: %w", err)
	}
	defer files.Close()
	refuse := func(path string) error {
		return thole.Errorf(thole.CodeForbidden, "opencode would run the plugins of %s without asking", path).
			WithHint("remove them from the workspace, or use profile full")
	}
	for _, dir := range []string{".opencode/plugin", ".opencode/plugins"} {
		if entries, err := fs.ReadDir(files.FS(), dir); err == nil && len(entries) > 0 {
			return refuse(dir)
		} else if info, there := files.Lstat(dir); there == nil && !info.IsDir() {
			return refuse(dir) // a link, which opencode follows
		}
	}
	if info, err := files.Lstat(".opencode"); err == nil && !info.IsDir() {
		return refuse(".opencode")
	}
	for _, name := range []string{"opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"} {
		if _, err := files.Lstat(name); err != nil {
			continue
		}
		if text, err := files.Read(name); err != nil || bytes.Contains(text, []byte("plugin")) || bytes.ContainsRune(text, '\\') {
			return refuse(name) // unreadable, or spelled such that nobody knows
		}
	}
	return nil
}
