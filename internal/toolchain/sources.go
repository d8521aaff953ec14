package toolchain

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// modules shows the downloads of the user's Go module cache as a proxy that is asked
// first. The cache itself stays private: go writes in it.
func (l *look) modules() {
	goenv := l.goEnv()
	cache := goenv("GOMODCACHE")
	if cache == "" {
		top, _, _ := strings.Cut(goenv("GOPATH"), ":")
		if top == "" {
			top = filepath.Join(l.Home, "go")
		}
		cache = filepath.Join(top, "pkg", "mod")
	}
	for _, name := range []string{"GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOSUMDB", "GOINSECURE", "GOFLAGS", "GOTOOLCHAIN"} {
		if v := goenv(name); v != "" {
			l.plan.Env[name] = v
		}
	}
	rest := goenv("GOPROXY")
	if strings.Contains(rest, "@") || rest == "" {
		rest = "https://proxy.golang.org,direct"
	}
	downloads := filepath.Join(cache, "cache", "download")
	switch {
	case rest == "off" || !filepath.IsAbs(downloads) || !there(downloads, ".") || strings.ContainsAny(downloads, ",| "):
	case l.mayShow([]string{downloads}) == nil:
		l.plan.Show = append(l.plan.Show, downloads)
		l.plan.Env["GOPROXY"] = "file://" + downloads + "," + rest
		return
	}
	if goenv("GOPROXY") != "" {
		l.plan.Env["GOPROXY"] = rest
	}
}

// goEnv reads Go's settings: variables, then the file of `go env -w`.
func (l *look) goEnv() func(string) string {
	dir := l.vars["XDG_CONFIG_HOME"]
	if dir == "" {
		dir = filepath.Join(l.Home, ".config")
	}
	text, _ := readFile(filepath.Join(dir, "go", "env"))
	written := variables(strings.Split(text, "\n"))
	return func(name string) string {
		if v := l.vars[name]; v != "" {
			return v
		}
		return written[name]
	}
}

// registries takes from the user's .npmrc where packages come from, and nothing else:
// that file holds tokens.
func (l *look) registries() {
	file := l.vars["NPM_CONFIG_USERCONFIG"]
	if file == "" {
		file = filepath.Join(l.Home, ".npmrc")
	}
	text, _ := readFile(file)
	out := ""
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if ok && (key == "registry" || strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry")) && !strings.ContainsAny(value, "@$") {
			out += key + "=" + value + "\n"
		}
	}
	if out != "" {
		l.plan.Files["npmrc"], l.plan.FileVars["NPM_CONFIG_GLOBALCONFIG"] = out, "npmrc"
	}
}

// gitKeys are the settings of git that the box takes over. None of them runs a program,
// names a file or holds a secret.
var gitKeys = []string{"user.name", "user.email", "init.defaultbranch", "core.autocrlf", "core.eol", "merge.conflictstyle", "diff.algorithm", "pull.rebase", "pull.ff", "push.default", "rebase.autosquash", "rebase.autostash"}

// gitTime bounds the look at git's settings.
const gitTime = 5 * time.Second

// git makes a configuration for the whole box, below the agent's own: who commits, and
// that the files belong to whom they belong. The user's global configuration is trusted
// and read by git itself, outside of any repository.
func (l *look) git(ctx context.Context) {
	text := "[include]\n\tpath = /etc/gitconfig\n[safe]\n\tdirectory = *\n"
	got := l.gitSettings(ctx)
	for _, key := range gitKeys {
		if v, ok := got[key]; ok {
			section, name, _ := strings.Cut(key, ".")
			text += "[" + section + "]\n\t" + name + " = " + gitQuote(v) + "\n"
		}
	}
	if got["filter.lfs.process"] != "" && slices.ContainsFunc(l.plan.Path, func(dir string) bool { return there(dir, "git-lfs") }) {
		text += "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs filter-process\n\trequired = true\n"
	}
	if got["user.email"] != "" {
		l.plan.Author = strings.TrimSpace(got["user.name"] + " <" + got["user.email"] + ">")
	}
	l.plan.Files["gitconfig"], l.plan.FileVars["GIT_CONFIG_SYSTEM"] = text, "gitconfig"
}

func (l *look) gitSettings(ctx context.Context) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "config", "--global", "--includes", "--null", "--list")
	cmd.Dir = "/"
	cmd.Env = []string{"HOME=" + l.Home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	for _, name := range []string{"PATH", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"} {
		if v := l.vars[name]; v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	out, err := cmd.Output()
	if err != nil || len(out) > maxFile {
		return nil // no git, or no configuration
	}
	got := map[string]string{}
	for entry := range bytes.SplitSeq(out, []byte{0}) {
		key, value, _ := strings.Cut(string(entry), "\n")
		got[strings.ToLower(key)] = value
	}
	return got
}

func gitQuote(v string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(v) + `"`
}
