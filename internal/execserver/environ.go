package execserver

import (
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/exec"
)

// coreNames is what "core" inherits.
var coreNames = []string{"PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER"}

// secretNames are left out of an inherited environment unless the policy says otherwise.
var secretNames = []string{"*KEY*", "*SECRET*", "*TOKEN*"}

// scrubbedNames belong to the server's own launch; no child gets them, whichever client asks.
var scrubbedNames = []string{
	"CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE", "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN", "NODE_REPL_AUTH_TOKEN",
	"OPENAI_FEDERATION_RULE_ID", "OPENAI_IDENTITY_TOKEN_FILE", "OPENAI_WORKLOAD_IDENTITY_CONTEXT", "THOLE_RELAY_TOKEN",
}

// environ builds a child's environment, sorted by name.
func environ(policy *exec.EnvPolicy, env map[string]string, own []string) ([]string, *jsonrpc.Error) {
	vars := map[string]string{}
	if policy != nil {
		if e := inherit(policy, own, vars); e != nil {
			return nil, e
		}
	}
	for k, v := range env {
		vars[k] = v
	}
	out := make([]string, 0, len(vars))
	for k, v := range vars {
		if slices.ContainsFunc(scrubbedNames, func(s string) bool { return strings.EqualFold(s, k) }) {
			continue
		}
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.IndexByte(v, 0) >= 0 {
			return nil, jsonrpc.Errorf(exec.CodeInternal, "nul byte found in provided data")
		}
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return out, nil
}

func inherit(p *exec.EnvPolicy, own []string, vars map[string]string) *jsonrpc.Error {
	switch p.Inherit {
	case "all", "core", "none":
	default:
		return jsonrpc.Errorf(exec.CodeInvalidParams, "unknown variant `%s`, expected one of `core`, `all`, `none`", p.Inherit)
	}
	for _, kv := range own {
		k, v, _ := strings.Cut(kv, "=")
		switch {
		case p.Inherit == "none":
		case p.Inherit == "core" && !slices.Contains(coreNames, k):
		case !p.IgnoreDefaultExcludes && matchAny(secretNames, k):
		case matchAny(p.Exclude, k):
		default:
			vars[k] = v
		}
	}
	for k, v := range p.Set {
		vars[k] = v
	}
	if len(p.IncludeOnly) > 0 {
		for k := range vars {
			if !matchAny(p.IncludeOnly, k) {
				delete(vars, k)
			}
		}
	}
	return nil
}

func matchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if match(strings.ToUpper(p), strings.ToUpper(name)) {
			return true
		}
	}
	return false
}

// match is a glob of * and ?.
func match(pattern, s string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == s[j]) && pattern[i] != '*':
			i++
			j++
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}

// lookup finds a variable in a list of assignments; the last one counts.
func lookup(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(env[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}
