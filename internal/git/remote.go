package git

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// transports are how Remote may reach another machine. What runs a program that an
// address names (ext) is never among them, nor is a path of this machine.
var transports = []string{"http", "https", "ssh"}

// passed are variables of the server's own user that its git needs to reach and to prove
// itself to other machines. What would ask a person is not among them: nobody is there.
var passed = []string{"HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy", "GNUPGHOME", "DBUS_SESSION_BUS_ADDRESS"}

// Remote runs git over a repository that only the server writes, with the network and
// with the configuration of the server's own user: credential helpers, ssh, proxies. What
// comes in is checked.
func (r *Runner) Remote(ctx context.Context, c Cmd) ([]byte, error) {
	program, err := r.program()
	if err != nil {
		return nil, err
	}
	config := safe("never")
	delete(config, "credential.helper") // the user's
	delete(config, "core.askPass")
	for _, t := range transports {
		config["protocol."+t+".allow"] = "always"
	}
	maps.Copy(config, map[string]string{
		"transfer.fsckObjects":              "true",
		"transfer.bundleURI":                "false",
		"transfer.credentialsInUrl":         "die",
		"http.followRedirects":              "initial",
		"http.lowSpeedLimit":                "1000",
		"http.lowSpeedTime":                 "60",
		"fetch.recurseSubmodules":           "false",
		"fetch.fsck.badTimezone":            "warn", // the next three are in old histories and harmless
		"fetch.fsck.missingSpaceBeforeDate": "warn",
		"fetch.fsck.zeroPaddedFilemode":     "warn",
	})
	env := map[string]string{"PATH": os.Getenv("PATH"), "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "GIT_ASKPASS": "true", "SSH_ASKPASS_REQUIRE": "never", "GCM_INTERACTIVE": "never"}
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok {
			env[name] = v
		}
	}
	maps.Copy(env, c.Env)
	return c.run(ctx, exec.Cmd{
		Path: program, Args: append([]string{"git"}, c.Args...), Dir: c.Dir, Env: pack(env, config, c.Config),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // no terminal on which ssh could ask
	})
}

// MainRemote is the name of the remote that a repository's configuration means where nobody
// names one: origin, or the only one there is. "" for none, and for several others.
func MainRemote(config map[string]string) string {
	var names []string
	for key := range config {
		rest, ok := strings.CutPrefix(key, "remote.")
		if name, has := strings.CutSuffix(rest, ".url"); ok && has {
			names = append(names, name)
		}
	}
	switch {
	case slices.Contains(names, "origin"):
		return "origin"
	case len(names) == 1:
		return names[0]
	}
	return ""
}

// Transport is how an address is reached, "" where Remote would not: "https", or "ssh"
// for HOST:PATH too.
func Transport(address string) string {
	if scheme, _, ok := strings.Cut(address, "://"); ok {
		for _, t := range transports {
			if strings.EqualFold(scheme, t) {
				return t
			}
		}
		return ""
	}
	host, path, ok := strings.Cut(address, ":")
	if !ok || host == "" || strings.ContainsAny(host, "/\\") || strings.HasPrefix(path, ":") || strings.HasPrefix(address, "-") {
		return "" // a path, or helper::address
	}
	return "ssh"
}
