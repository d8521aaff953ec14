package toolchain_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/toolchain"
)

// plant makes a tree: a name that ends in / is a directory, "a -> b" a link, and
// "a = text" a file with a text. Files are programs.
func plant(t *testing.T, names ...string) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		name, to, link := strings.Cut(name, " -> ")
		name, text, _ := strings.Cut(name, " = ")
		at := filepath.Join(top, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(to, at)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o755)
		default:
			err = os.WriteFile(at, []byte(text), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// guard refuses what the real one would: it is tested where it is.
func guard(path string) error {
	if real, err := filepath.EvalSymlinks(path); err != nil || strings.Contains(real, "/.ssh") || strings.Contains(path, "/run/") {
		return errors.New("is for nobody")
	}
	return nil
}

func system(path string) bool { return strings.HasPrefix(path, "/usr/") }

// Each installer's programs are shown with what they need and nothing next to it.
func TestWhatProgramsNeed(t *testing.T) {
	for name, c := range map[string]struct {
		tree  []string
		path  []string // below the home, or absolute
		in    []string // PATH in the box
		shown []string
		seeds []string
		env   map[string]string
	}{
		"the system's":      {path: []string{"/usr/bin"}, in: []string{"/usr/bin"}},
		"one twice":         {tree: []string{"bin/x"}, path: []string{"bin", "bin"}, in: []string{"bin"}, shown: []string{"bin"}},
		"scripts":           {tree: []string{"bin/x", "secret"}, path: []string{"bin"}, in: []string{"bin"}, shown: []string{"bin"}},
		"Go's":              {tree: []string{"go/bin/x", "go/pkg/mod/", "go/src/"}, path: []string{"go/bin"}, in: []string{"go/bin"}, shown: []string{"go/bin"}},
		"a Go SDK":          {tree: []string{"sdk/go1.26/bin/go", "sdk/go1.26/pkg/"}, path: []string{"sdk/go1.26/bin"}, in: []string{"sdk/go1.26/bin"}, shown: []string{"sdk/go1.26"}},
		"one in the home":   {tree: []string{"flutter/bin/x", "flutter/version"}, path: []string{"flutter/bin"}, in: []string{"flutter/bin"}, shown: []string{"flutter"}},
		"lib in the home":   {tree: []string{"mine/bin/x", "mine/lib/"}, path: []string{"mine/bin"}, in: []string{"mine/bin"}, shown: []string{"mine/bin"}},
		"of another's home": {tree: []string{"o/u/bin/x", "o/u/lib/", "o/u/.bashrc"}, path: []string{"o/u/bin"}, in: []string{"o/u/bin"}, shown: []string{"o/u/bin"}},
		"nvm":               {tree: []string{".nvm/versions/node/v20/bin/node", ".nvm/versions/node/v20/lib/", ".nvm/alias"}, path: []string{".nvm/versions/node/v20/bin"}, in: []string{".nvm/versions/node/v20/bin"}, shown: []string{".nvm/versions/node/v20"}},
		"fnm":               {tree: []string{"f/node-versions/v20/installation/bin/node", "f/node-versions/v20/installation/lib/", "run/fnm/1 -> ../../f/node-versions/v20/installation"}, path: []string{"run/fnm/1/bin"}, in: []string{"f/node-versions/v20/installation/bin"}, shown: []string{"f/node-versions/v20/installation"}},
		"rustup": {tree: []string{".cargo/bin/rustup", ".cargo/bin/cargo -> rustup", ".cargo/credentials.toml", ".rustup/toolchains/stable/bin/rustc", ".rustup/settings.toml = default"}, path: []string{".cargo/bin"},
			in: []string{".cargo/bin"}, shown: []string{".cargo/bin", ".rustup/toolchains"}, seeds: []string{".rustup/settings.toml", ".rustup/toolchains/stable"}},
		"pyenv": {tree: []string{".pyenv/shims/python", ".pyenv/plugins/p/shims/x"}, path: []string{".pyenv/plugins/p/shims", ".pyenv/shims"}, in: []string{".pyenv/plugins/p/shims", ".pyenv/shims"}, shown: []string{".pyenv"}, env: map[string]string{"PYENV_ROOT": ".pyenv"}},
		"volta": {tree: []string{".volta/bin/node"}, path: []string{".volta/bin"}, in: []string{".volta/bin"}, shown: []string{".volta"}, env: map[string]string{"VOLTA_HOME": ".volta"}},
		"mise": {tree: []string{".local/share/mise/shims/node -> ../../../bin/mise", ".local/bin/mise", ".local/share/mise/installs/node/20.1.0/bin/node", ".local/share/mise/installs/node/20 -> ./20.1.0", ".local/share/mise/x",
			".config/mise/config.toml = [env]\nKEY = 'secret'\n[tools]\nnode = '20'\n"}, path: []string{".local/share/mise/shims"}, in: []string{".local/share/mise/shims"},
			shown: []string{".local/bin/mise", ".local/share/mise/installs", ".local/share/mise/shims"},
			seeds: []string{".config/mise/config.toml", ".local/share/mise/installs/node/20", ".local/share/mise/installs/node/20.1.0"}},
		"mise, active": {tree: []string{".local/share/mise/installs/node/20.1.0/bin/node", ".local/share/mise/installs/node/20 -> ./20.1.0"}, path: []string{".local/share/mise/installs/node/20/bin"},
			in: []string{".local/share/mise/installs/node/20/bin"}, shown: []string{".local/share/mise/installs/node/20", ".local/share/mise/installs/node/20.1.0"}},
		"pipx": {tree: []string{".local/bin/tool -> ../share/pipx/venvs/tool/bin/tool", ".local/share/pipx/venvs/tool/bin/tool", ".local/share/pipx/venvs/tool/pyvenv.cfg", ".local/share/keyrings/x",
			".local/share/pipx/venvs/tool/bin/python -> ../../../../uv/python/3.12/bin/python", ".local/share/uv/python/3.12/bin/python", ".local/share/uv/python/3.12/lib/"}, path: []string{".local/bin"},
			in: []string{".local/bin"}, shown: []string{".local/bin", ".local/share/pipx/venvs/tool", ".local/share/uv/python/3.12"}},
		"npm": {tree: []string{".local/bin/x -> ../lib/node_modules/x/cli.js", ".local/lib/node_modules/x/cli.js", ".local/share/y"}, path: []string{".local/bin"},
			in: []string{".local/bin"}, shown: []string{".local/bin", ".local/lib/node_modules"}},
		"a link to a program": {tree: []string{"bin/x -> ../p/x", "p/x", "p/y"}, path: []string{"bin"}, in: []string{"bin"}, shown: []string{"bin", "p/x"}},
		"links to keys":       {tree: []string{"bin/x -> ../.ssh/x", "bin/y -> ../.ssh", ".ssh/x"}, path: []string{"bin"}, in: []string{"bin"}, shown: []string{"bin"}},
		"keys":                {tree: []string{".ssh/x", "k -> .ssh"}, path: []string{".ssh", "k"}},
		"conda":               {tree: []string{"miniconda3/bin/python", "miniconda3/conda-meta/"}, path: []string{"miniconda3/bin"}, in: []string{"miniconda3/bin"}, shown: []string{"miniconda3"}},
		"a linked home": {tree: []string{"data/.volta/bin/node", "h -> data"}, path: []string{"h/.volta/bin"}, in: []string{"h/.volta/bin"}, shown: []string{"data/.volta", "h/.volta"},
			env: map[string]string{"VOLTA_HOME": "data/.volta"}},
		"of no use": {path: []string{"none", "/snap/bin", "/mnt/c/Windows"}},
	} {
		t.Run(name, func(t *testing.T) {
			home := plant(t, c.tree...)
			full := func(list []string) (out []string) {
				for _, p := range list {
					if !filepath.IsAbs(p) {
						p = filepath.Join(home, p)
					}
					out = append(out, p)
				}
				return out
			}
			got := toolchain.Look(t.Context(), toolchain.Config{Path: full(c.path), Home: home, Environ: []string{"PATH=" + os.Getenv("PATH")}, System: system, Judge: guard})
			if !slices.Equal(got.Path, full(c.in)) {
				t.Errorf("PATH %q, want %q: %+v", got.Path, full(c.in), got.Entries)
			}
			shown := slices.DeleteFunc(got.Show, func(p string) bool { return strings.HasSuffix(p, "cache/download") })
			if !slices.Equal(shown, full(c.shown)) {
				t.Errorf("shown %q, want %q", shown, full(c.shown))
			}
			var seeds []string
			for _, s := range got.Seeds {
				seeds = append(seeds, s.Path)
				if strings.Contains(s.Text, "secret") {
					t.Errorf("%s has a secret: %s", s.Path, s.Text)
				}
			}
			if !slices.Equal(seeds, c.seeds) {
				t.Errorf("seeds %q, want %q", seeds, c.seeds)
			}
			for k, v := range c.env {
				if got.Env[k] != filepath.Join(home, v) {
					t.Errorf("%s is %q", k, got.Env[k])
				}
			}
			for _, e := range got.Entries {
				if in := slices.ContainsFunc(got.Path, func(p string) bool { return p == e.Dir }); !in && e.LeftOut == "" && len(e.Shown) == 0 {
					t.Errorf("%s is gone without a reason", e.Dir)
				}
			}
		})
	}
}

// A relative directory would be one of the repository's.
func TestNoRelativePath(t *testing.T) {
	got := toolchain.Look(t.Context(), toolchain.Config{Path: []string{"", ".", "node_modules/.bin"}, Home: t.TempDir(), System: system, Judge: guard})
	if len(got.Path) != 0 || len(got.Entries) != 3 || slices.ContainsFunc(got.Entries, func(e toolchain.Entry) bool { return e.LeftOut == "" }) {
		t.Errorf("%+v", got)
	}
}

func TestVariables(t *testing.T) {
	home := plant(t, "sdk/go/bin/go", "sdk/go/lib/")
	look := func(bare bool, typed ...string) toolchain.Plan {
		return toolchain.Look(t.Context(), toolchain.Config{Home: home, Path: []string{filepath.Join(home, "sdk/go/bin")}, Names: typed, Bare: bare, System: system, Judge: guard, Environ: []string{
			"TZ=UTC", "LANG=de_DE.UTF-8", "LC_ALL=C", "GOPRIVATE=corp.example", "GOROOT=" + home + "/sdk/go", "JAVA_HOME=" + home + "/java", "PIP_INDEX_URL=https://u:p@host/simple", "UV_DEFAULT_INDEX=https://host/simple",
			"CARGO_REGISTRIES_CORP_INDEX=sparse+https://host/", "CARGO_REGISTRIES_CORP_TOKEN=t", "CARGO_NET_KEY=k", "AWS_REGION=eu", "AWS_SECRET_ACCESS_KEY=s", "OPENAI_API_KEY=o", "MY_SETTING=1", "DATABASE_PASSWORD=d",
			"HTTPS_PROXY=http://u:p@proxy", "NODE_EXTRA_CA_CERTS=/etc/corp.pem", "PATH=/bin", "LD_PRELOAD=/x.so", "VOLTA_HOME=" + home + "/.volta"}})
	}
	p := look(false, "MY_SETTING", "DATABASE_PASSWORD", "PATH", "HTTPS_PROXY")
	for name, want := range map[string]string{"TZ": "UTC", "LANG": "de_DE.UTF-8", "LC_ALL": "", "GOPRIVATE": "corp.example", "GOROOT": home + "/sdk/go", "JAVA_HOME": "", "PIP_INDEX_URL": "", "UV_DEFAULT_INDEX": "https://host/simple",
		"CARGO_REGISTRIES_CORP_INDEX": "sparse+https://host/", "CARGO_REGISTRIES_CORP_TOKEN": "", "CARGO_NET_KEY": "", "AWS_REGION": "eu", "AWS_SECRET_ACCESS_KEY": "", "OPENAI_API_KEY": "", "MY_SETTING": "1", "DATABASE_PASSWORD": "d",
		"HTTPS_PROXY": "", "NODE_EXTRA_CA_CERTS": "", "PATH": "", "LD_PRELOAD": "", "VOLTA_HOME": ""} {
		if p.Env[name] != want {
			t.Errorf("%s is %q, want %q", name, p.Env[name], want)
		}
	}
	if !slices.Equal(p.Certificates, []string{"/etc/corp.pem"}) {
		t.Errorf("certificates: %q", p.Certificates)
	}
	secret, left := 0, 0
	for _, v := range p.Variables {
		if v.Secret {
			secret++
		}
		if v.LeftOut != "" {
			left++
		}
	}
	if secret != 1 || left != 4 {
		t.Errorf("%d secrets, %d left out: %+v", secret, left, p.Variables)
	}
	if p := look(true, "MY_SETTING"); len(p.Env) != 1 || p.Env["MY_SETTING"] != "1" || len(p.Files) != 0 || len(p.Certificates) != 0 {
		t.Errorf("bare: %v %v %v", p.Env, p.Files, p.Certificates)
	}
}

// Settings of git, npm and go arrive without what runs programs or opens doors.
func TestSettingsWithoutSecrets(t *testing.T) {
	home := plant(t, ".gitconfig = [user]\n\tname = A \\\"B\\\" \\\\C\n\temail = a@example.com\n[core]\n\thooksPath = /evil\n\tautocrlf = input\n[credential]\n\thelper = store\n[url \"https://token@host/\"]\n\tinsteadOf = x\n[include]\n\tpath = more\n",
		"more = [init]\n\tdefaultBranch = trunk\n", ".npmrc = //host/:_authToken=secret\nregistry=https://host/npm/\n@corp:registry = https://corp/\n@bad:registry=https://u:secret@corp/\n_auth=secret\n",
		"go/pkg/mod/cache/download/", ".config/go/env = GOPRIVATE=corp.example\nGOPROXY=https://goproxy,direct\n")
	p := toolchain.Look(t.Context(), toolchain.Config{Home: home, Environ: []string{"PATH=" + os.Getenv("PATH")}, System: system, Judge: guard})
	if p.Files["npmrc"] != "registry=https://host/npm/\n@corp:registry=https://corp/\n" || p.FileVars["NPM_CONFIG_GLOBALCONFIG"] != "npmrc" {
		t.Errorf("npm: %q", p.Files["npmrc"])
	}
	if want := "file://" + home + "/go/pkg/mod/cache/download,https://goproxy,direct"; p.Env["GOPROXY"] != want || p.Env["GOPRIVATE"] != "corp.example" {
		t.Errorf("go: %q", p.Env)
	}
	file := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(file, []byte(p.Files["gitconfig"]), 0o600); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"user.name": `A "B" \C`, "user.email": "a@example.com", "init.defaultBranch": "trunk", "core.autocrlf": "input", "core.hooksPath": "", "credential.helper": "", "safe.directory": "*"} {
		out, _ := exec.Command("git", "config", "-f", file, key).Output()
		if strings.TrimSpace(string(out)) != want {
			t.Errorf("git %s is %q, want %q", key, out, want)
		}
	}
	if p.Author != `A "B" \C <a@example.com>` || strings.Contains(p.Files["gitconfig"], "token") {
		t.Errorf("%q %s", p.Author, p.Files["gitconfig"])
	}
}
