package git

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// User is the server's own user, as far as their configuration of git counts: who commits,
// and what is ignored everywhere. Programs that it names run for nobody here.
type User struct {
	Git *Runner
	// Home is their home directory, "" for nobody's.
	Home string
}

// Settings are what the user's configuration says, by key, in which only the middle part has
// a case.
func (u User) Settings(ctx context.Context) map[string]string {
	if file := u.file(); file != "" {
		if out, err := u.Git.RunOwn(ctx, Cmd{Dir: "/", Args: []string{"config", "--file", file, "--includes", "-z", "--list"}, Env: map[string]string{"HOME": u.Home}}); err == nil {
			return Values(out)
		}
	}
	return map[string]string{}
}

// SettingsIn are what configuration says in a repository: the user's own, and the
// repository's over it. The user's is read with it, since one file may include another
// depending on where the repository is. c is a run over the repository, in a box. Where that
// is another user's, theirs says who they are: own is false.
func (u User) SettingsIn(ctx context.Context, c Cmd, own bool) (map[string]string, error) {
	c.Args = []string{"config", "--includes", "-z", "--list"}
	if file := u.file(); file != "" && own {
		with := c
		with.Env = map[string]string{"GIT_CONFIG_GLOBAL": file, "HOME": u.Home}
		maps.Copy(with.Env, c.Env)
		with.Show = append(append([]string{file}, u.included(ctx, file)...), c.Show...)
		if out, err := u.Git.Run(ctx, with); err == nil {
			return Values(out), nil
		}
	}
	out, err := u.Git.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	all := u.Settings(ctx)
	maps.Copy(all, Values(out))
	return all, nil
}

// Ignored is the user's own list of files that git ignores everywhere, "" for none.
func (u User) Ignored(ctx context.Context) string {
	if u.Home == "" {
		return ""
	}
	path := u.path(u.Settings(ctx)["core.excludesfile"])
	if path == "" {
		path = filepath.Join(u.config(), "ignore")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !isFile(real) {
		return ""
	}
	return real
}

// file is that of the user's own configuration, "" for none.
func (u User) file() string {
	if u.Home == "" {
		return ""
	}
	for _, path := range []string{filepath.Join(u.Home, ".gitconfig"), filepath.Join(u.config(), "config")} {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
	}
	return ""
}

// config is the directory with the rest of it.
func (u User) config() string {
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" && u.Home == os.Getenv("HOME") {
		return filepath.Join(dir, "git")
	}
	return filepath.Join(u.Home, ".config", "git")
}

// path is a path that the configuration names, "" for one that is not absolute.
func (u User) path(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = filepath.Join(u.Home, rest)
	}
	if !filepath.IsAbs(name) {
		return ""
	}
	return name
}

// included are the files that the user's configuration includes, wherever it does.
func (u User) included(ctx context.Context, file string) (files []string) {
	out, err := u.Git.Own(ctx, "/", "config", "--file", file, "--no-includes", "-z", "--list")
	if err != nil {
		return nil
	}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		key, name, _ := strings.Cut(entry, "\n")
		if key != "include.path" && !(strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")) {
			continue
		}
		path := u.path(name)
		if path == "" && name != "" {
			path = filepath.Join(filepath.Dir(file), name)
		}
		if isFile(path) {
			files = append(files, path)
		}
	}
	return files
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// Values reads a list of settings that git ends with null bytes; of a key that is there
// twice the last counts.
func Values(out []byte) map[string]string {
	all := map[string]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			all[key] = value
		} else if entry != "" {
			all[entry] = "true"
		}
	}
	return all
}
