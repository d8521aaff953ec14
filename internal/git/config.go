package git

import (
	"maps"
	"os"
	"slices"
	"strconv"
)

// safe is the configuration that every run has: it wins over the repository's own. It
// switches off what git would start by itself. Filters, and drivers of diffs and merges,
// have names that a repository chooses; for those there is the box. transports says which
// of them git may use.
func safe(transports string) map[string]string {
	return map[string]string{
		"core.hooksPath":      os.DevNull,
		"core.fsmonitor":      "false",
		"core.pager":          "cat",
		"core.editor":         ":",
		"core.askPass":        "",
		"core.attributesFile": os.DevNull,
		"core.excludesFile":   os.DevNull,
		"core.quotePath":      "false",
		"credential.helper":   "",
		"protocol.allow":      transports,
		"gc.auto":             "0",
		"maintenance.auto":    "false",
		"submodule.recurse":   "false",
		"commit.gpgSign":      "false",
		"tag.gpgSign":         "false",
		"log.showSignature":   "false",
		"safe.directory":      "*",
		"advice.detachedHead": "false",
	}
}

// environ is a run's environment: nothing of the server's own but where programs are.
func environ(extra map[string]string, configs ...map[string]string) []string {
	env := map[string]string{
		"PATH":                os.Getenv("PATH"),
		"HOME":                "/nonexistent",
		"LC_ALL":              "C",
		"GIT_CONFIG_NOSYSTEM": "1",
		"GIT_CONFIG_GLOBAL":   os.DevNull,
		"GIT_ATTR_NOSYSTEM":   "1",
		"GIT_TERMINAL_PROMPT": "0",
		"GIT_OPTIONAL_LOCKS":  "0",
		"GIT_PAGER":           "cat",
	}
	maps.Copy(env, extra)
	return pack(env, configs...)
}

// pack adds configuration to an environment, later maps over earlier ones that spell a key
// the same.
func pack(env map[string]string, configs ...map[string]string) []string {
	all := map[string]string{}
	for _, c := range configs {
		maps.Copy(all, c)
	}
	var out []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		out = append(out, k+"="+env[k])
	}
	out = append(out, "GIT_CONFIG_COUNT="+strconv.Itoa(len(all)))
	for i, k := range slices.Sorted(maps.Keys(all)) {
		n := strconv.Itoa(i)
		out = append(out, "GIT_CONFIG_KEY_"+n+"="+k, "GIT_CONFIG_VALUE_"+n+"="+all[k])
	}
	return out
}
