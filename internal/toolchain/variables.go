package toolchain

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Use is how a variable of the user's counts in the box.
type Use string

const (
	Passes  Use = "as it is"                       // its value is no secret and means the same inside
	Locale  Use = "if it names UTF-8"              // CLIs read and write nothing else
	Address Use = "if it has no password"          // URLs may carry one
	Place   Use = "if the box shows what it names" // a path
	Root    Use = "names the root in the box"      // set by Layouts
	Trust   Use = "its certificates are trusted"   // joined into the one file that all of these name in the box
	Proxy   Use = "thole's own proxy goes through it"
	Typed   Use = "typed in executor.env"
)

// Variable is a row of the allow list. Names may be patterns with *.
type Variable struct {
	Names []string
	Use   Use
}

// Variables is the allow list. No other variable of the user's is in the box, and none
// of these whose name says that it holds a secret.
var Variables = []Variable{
	{[]string{"TZ", "COLORTERM", "NO_COLOR"}, Passes},
	{[]string{"LANG", "LANGUAGE", "LC_*"}, Locale},
	{[]string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"}, Passes},
	{[]string{"GOFLAGS", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOSUMDB", "GOINSECURE", "GOTOOLCHAIN", "GOEXPERIMENT", "GOOS", "GOARCH", "GOAMD64", "CGO_ENABLED"}, Passes},
	{[]string{"GOPROXY"}, Address},
	{[]string{"RUSTFLAGS", "RUSTDOCFLAGS", "RUSTUP_TOOLCHAIN", "RUST_BACKTRACE", "CARGO_BUILD_JOBS", "CARGO_INCREMENTAL", "CARGO_NET_*", "CARGO_TERM_*", "CARGO_PROFILE_*"}, Passes},
	{[]string{"RUSTUP_DIST_SERVER", "CARGO_REGISTRIES_*_INDEX", "CARGO_REGISTRY_DEFAULT"}, Address},
	{[]string{"NPM_CONFIG_REGISTRY", "npm_config_registry", "NPM_CONFIG_STRICT_SSL", "YARN_NPM_REGISTRY_SERVER", "YARN_REGISTRY", "COREPACK_NPM_REGISTRY"}, Address},
	{[]string{"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT", "PIP_DISABLE_PIP_VERSION_CHECK", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "BUNDLE_MIRROR__*", "HOMEBREW_BOTTLE_DOMAIN"}, Address},
	{[]string{"PYENV_VERSION", "RBENV_VERSION", "NODENV_VERSION", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTEST_ADDOPTS", "MAKEFLAGS", "CMAKE_GENERATOR", "CC", "CXX"}, Passes},
	{[]string{"GOROOT", "JAVA_HOME", "NVM_DIR", "FNM_DIR", "NVM_BIN", "DENO_INSTALL", "BUN_INSTALL", "PNPM_HOME", "CONDA_PREFIX", "VIRTUAL_ENV", "ANDROID_HOME", "ASDF_DIR", "HOMEBREW_CELLAR", "HOMEBREW_REPOSITORY", "LOCALE_ARCHIVE", "PIP_FIND_LINKS", "UV_FIND_LINKS", "PKG_CONFIG_PATH"}, Place},
	{[]string{"AWS_REGION", "AWS_DEFAULT_REGION", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_REGION", "CLOUDSDK_CORE_PROJECT", "AZURE_DEFAULTS_LOCATION"}, Passes},
	{[]string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "NPM_CONFIG_CAFILE", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE", "DENO_CERT"}, Trust},
	{[]string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"}, Proxy},
	{roots(), Root},
}

func roots() (names []string) {
	for _, lay := range Layouts {
		if lay.Set {
			names = append(names, lay.Root)
		}
	}
	return names
}

// Names are the variables with a use.
func Names(use Use) (names []string) {
	for _, v := range Variables {
		if v.Use == use {
			names = append(names, v.Names...)
		}
	}
	return names
}

// UseOf is how a variable counts, false where it does not.
func UseOf(name string) (Use, bool) {
	for _, v := range Variables {
		for _, pattern := range v.Names {
			if ok, _ := path.Match(pattern, name); ok && (pattern == name || !Secret(name)) {
				return v.Use, true
			}
		}
	}
	return "", false
}

// Secret reports whether a variable's name says that it holds a secret.
func Secret(name string) bool {
	return slices.ContainsFunc(strings.Split(strings.ToUpper(name), "_"), func(word string) bool {
		return slices.Contains([]string{"TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASS", "PASSPHRASE", "KEY", "KEYS", "APIKEY",
			"CREDENTIAL", "CREDENTIALS", "AUTH", "PAT", "PRIVATE", "COOKIE", "SESSION", "DSN", "LOGIN"}, word)
	})
}

// Reserved reports a variable that thole sets itself, so that passing another value
// would break the box.
func Reserved(name string) bool {
	use, _ := UseOf(name)
	return use == Proxy || use == Trust || strings.HasPrefix(name, "THOLE_") || strings.HasPrefix(name, "LD_") ||
		slices.Contains([]string{"PATH", "HOME", "TMPDIR", "TERM", "SHELL", "USER", "LOGNAME", "PWD", "ALL_PROXY", "all_proxy", "GIT_SSH_COMMAND", "GIT_CONFIG_SYSTEM", "NODE_USE_ENV_PROXY"}, name)
}

// environ decides about the user's variables. Those that Layouts and modules set are
// kept where what they name is shown.
func (l *look) environ() {
	by := map[string]Passed{}
	for name, value := range l.plan.Env {
		if use, _ := UseOf(name); use == Root && !covered(value, l.plan.Show) {
			delete(l.plan.Env, name)
		} else {
			by[name] = Passed{Name: name, Use: use}
		}
	}
	for name, value := range l.vars {
		use, listed := UseOf(name)
		typed := slices.Contains(l.Names, name) && !Reserved(name)
		if typed {
			use = Typed
		}
		if l.Bare && !typed && use != Proxy || !listed && !typed {
			continue
		}
		p := Passed{Name: name, Use: use, Secret: typed && Secret(name)}
		switch {
		case use == Trust || use == Proxy || use == Root:
		case use == Address && strings.Contains(value, "@") && strings.Contains(value, "://"):
			p.LeftOut = "it has a password in it, or a user"
		case by[name].Name != "":
			continue // decided already
		case use == Locale && !utf8(value):
			p.LeftOut = "it names no UTF-8 locale"
		case use == Place && !l.shown(value):
			p.LeftOut = "what it names is not shown"
		default:
			l.plan.Env[name] = value
		}
		if use == Root && by[name].Name == "" {
			p.LeftOut = "its programs are not on PATH"
		}
		if use == Trust && !slices.Contains(l.plan.Certificates, value) {
			l.plan.Certificates = append(l.plan.Certificates, value)
		}
		by[name] = p
	}
	slices.Sort(l.plan.Certificates)
	for _, name := range slices.Sorted(maps.Keys(by)) {
		l.plan.Variables = append(l.plan.Variables, by[name])
	}
}

func utf8(locale string) bool {
	l := strings.ToLower(locale)
	return strings.HasSuffix(l, "utf-8") || strings.HasSuffix(l, "utf8")
}

// shown reports whether all paths of a value are in the box.
func (l *look) shown(value string) bool {
	for p := range strings.SplitSeq(value, ":") {
		if !strings.HasPrefix(p, "/") || !l.System(path.Clean(p)) && !covered(path.Clean(p), l.plan.Show) {
			return false
		}
	}
	return true
}
