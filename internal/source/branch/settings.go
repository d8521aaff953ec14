package branch

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/tholehq/thole/internal/git"
)

// settings are what git's configuration says in a repository, by key, in which only the middle part has a case: the
// user's own first, then the repository's over it. The files are read in the box too, as
// one may include another depending on where the repository is.
func (b *Branches) settings(ctx context.Context, at repository) (map[string]string, error) {
	list := git.Cmd{Args: []string{"config", "--includes", "-z", "--list"}}
	if global := b.global(); global != "" && at.uid == 0 {
		c := list
		c.Env = map[string]string{"GIT_CONFIG_GLOBAL": global, "HOME": b.cfg.UserHome}
		c.Show = append([]string{global}, b.included(ctx, global)...)
		if out, err := b.run(ctx, at, c); err == nil {
			return parse(out), nil
		}
	}
	out, err := b.run(ctx, at, list)
	if err != nil {
		return nil, err
	}
	all := b.own(ctx)
	for k, v := range parse(out) {
		all[k] = v
	}
	return all, nil
}

// own is the configuration of the server's user alone.
func (b *Branches) own(ctx context.Context) map[string]string {
	if global := b.global(); global != "" {
		if out, err := b.cfg.Git.RunOwn(ctx, git.Cmd{Dir: "/", Args: []string{"config", "--file", global, "--includes", "-z", "--list"}, Env: map[string]string{"HOME": b.cfg.UserHome}}); err == nil {
			return parse(out)
		}
	}
	return map[string]string{}
}

// global is the file of the user's own configuration, "" for none.
func (b *Branches) global() string {
	if b.cfg.UserHome == "" {
		return ""
	}
	for _, path := range []string{filepath.Join(b.cfg.UserHome, ".gitconfig"), filepath.Join(b.cfg.UserHome, ".config", "git", "config")} {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
	}
	return ""
}

// included are the files that the user's configuration includes, wherever it does.
func (b *Branches) included(ctx context.Context, global string) (files []string) {
	out, err := b.cfg.Git.Own(ctx, "/", "config", "--file", global, "--no-includes", "-z", "--list")
	if err != nil {
		return nil
	}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		key, path, _ := strings.Cut(entry, "\n")
		if key != "include.path" && !(strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path")) {
			continue
		}
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(b.cfg.UserHome, rest)
		}
		path = resolve(filepath.Dir(global), path)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			files = append(files, path)
		}
	}
	return files
}

// parse reads a list of settings; of a key that is there twice the last counts.
func parse(out []byte) map[string]string {
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

// cleanURL is an address that an agent may see: one it could reach, and without what
// proves who the user is. "" for any other.
func cleanURL(address string) string {
	transport := git.Transport(address)
	if transport == "" || strings.ContainsAny(address, "\n\r\x00") {
		return ""
	}
	if !strings.Contains(address, "://") {
		return address // HOST:PATH has no place for a password
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if u.User != nil && transport == "ssh" {
		u.User = url.User(u.User.Username())
	} else {
		u.User = nil
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}
