package ownconfig

import (
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// An MCP server runs in the box or is reached from it, so agents can read all that its
// configuration has. What looks like a secret there passes only for servers that a person
// named in providers.mcp_secrets.

// server is the path of the server of a key, which is two names long in every CLI, and
// whether it may have its secrets.
func (w *walk) server(at []string) (path []string, consent bool) {
	return at[:2], slices.Contains(w.Secrets, at[1])
}

func consentHint(name string) string { return "; providers.mcp_secrets = [\"" + name + "\"] passes it" }

// leaveOut drops the server of a key.
func (w *walk) leaveOut(at []string, why string) {
	server, _ := w.server(at)
	w.dropped[strings.Join(server, "\x00")] = why
}

func (w *walk) program(at []string, v any) {
	words, isList := v.([]any)
	name, _ := v.(string)
	if isList && len(words) > 0 {
		name, _ = words[0].(string)
	}
	if name == "" {
		w.refuse(at, whyUnknown)
		return
	}
	note := ""
	if at, err := exec.LookPath(name); err != nil {
		note = "the program is not on the PATH of this machine"
	} else if at, err = filepath.Abs(at); err == nil && w.Shown != nil && !w.Shown(at) {
		note = "the box does not show " + w.shown(at) + ": name its directory in executor.paths"
	}
	if isList {
		if !w.harmless(at, words[1:]) {
			return
		}
	}
	w.out.put(at, v)
	w.say(at, Passed, note)
}

func (w *walk) words(at []string, v any) {
	list, ok := v.([]any)
	if !ok {
		w.refuse(at, whyUnknown)
		return
	}
	if w.harmless(at, list) {
		w.out.put(at, v)
		w.say(at, Passed, "")
	}
}

// harmless reports whether arguments may pass. A server without one of them is another, so
// it is left out as a whole.
func (w *walk) harmless(at []string, list []any) bool {
	server, consent := w.server(at)
	for i, one := range list {
		word, _ := one.(string)
		name, value, assigned := strings.Cut(strings.TrimLeft(word, "-"), "=")
		secret := secretValue(word) || assigned && (secretName(name) || secretValue(value))
		if i > 0 {
			before, _ := list[i-1].(string)
			secret = secret || strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && secretName(before)
		}
		if !secret {
			continue
		}
		if !consent {
			w.leaveOut(at, "an argument looks like a secret"+consentHint(server[1]))
			return false
		}
		w.secret[word] = true
	}
	return true
}

func (w *walk) address(at []string, v any) {
	text, _ := v.(string)
	u, err := url.Parse(text)
	server, consent := w.server(at)
	switch {
	case err != nil || u.Host == "":
		w.refuse(at, "not the URL of a server")
	case (u.User != nil || u.RawQuery != "" || reference().MatchString(text)) && !consent:
		w.leaveOut(at, "its URL may hold a secret"+consentHint(server[1]))
	default:
		if u.User != nil || u.RawQuery != "" {
			w.secret[text] = true
		}
		w.out.put(at, w.expand(text))
		w.say(at, Passed, "through the egress proxy")
	}
}

func (w *walk) values(at []string, v any) {
	o, ok := v.(*object)
	if !ok {
		w.refuse(at, whyUnknown)
		return
	}
	server, consent := w.server(at)
	header := strings.Contains(strings.ToLower(at[len(at)-1]), "header")
	for _, name := range o.names {
		sub := append(slices.Clone(at), name)
		text, isText := o.by[name].(string)
		secret := isText && (header || secretName(name) || secretValue(text) || reference().MatchString(text))
		switch {
		case secret && !consent:
			w.refuse(sub, "may be a secret"+consentHint(server[1]))
		case secret:
			w.hand(sub, w.expand(text))
		default:
			w.out.put(sub, o.by[name])
			w.say(sub, Passed, "")
		}
	}
}

// hand passes a secret that a person consented to.
func (w *walk) hand(at []string, value string) {
	if value == "" {
		w.refuse(at, "its variable is not set where the server runs")
		return
	}
	w.secret[value] = true
	w.out.put(at, value)
	w.say(at, Mapped, "passed by providers.mcp_secrets")
}

// variables are handed over by their values: in the box they are not set.
func (w *walk) variables(at []string, v any) {
	list, _ := v.([]any)
	server, consent := w.server(at)
	for _, one := range list {
		name, _ := one.(string)
		if o, ok := one.(*object); ok {
			name, _ = o.by["name"].(string)
		}
		if !consent {
			w.refuse(append(slices.Clone(at), name), "a variable of yours"+consentHint(server[1]))
			continue
		}
		w.hand(append(slices.Clone(server), "env", name), w.getenv(name))
	}
}

func (w *walk) headerVars(at []string, v any) {
	o, _ := v.(*object)
	if o == nil {
		w.refuse(at, whyUnknown)
		return
	}
	for _, header := range o.names {
		variable, _ := o.by[header].(string)
		w.header(at, header, "", variable)
	}
}

func (w *walk) bearerVar(at []string, v any) {
	variable, _ := v.(string)
	w.header(at, "Authorization", "Bearer ", variable)
}

func (w *walk) header(at []string, name, before, variable string) {
	server, consent := w.server(at)
	to := append(slices.Clone(server), "http_headers", name)
	value := w.getenv(variable)
	switch {
	case !consent:
		w.refuse(at, "a variable of yours"+consentHint(server[1]))
	case value == "":
		w.hand(to, "")
	default:
		w.secret[value] = true
		w.hand(to, before+value)
	}
}

// reference is how CLIs refer to variables and files in their settings.
var reference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\{(env|file):([^}]+)\}`)
})

// expand puts what is referred to in the place of references.
func (w *walk) expand(s string) string {
	return reference().ReplaceAllStringFunc(s, func(ref string) string {
		m := reference().FindStringSubmatch(ref)
		switch {
		case m[1] != "":
			if v := w.getenv(m[1]); v != "" {
				return v
			}
			return m[2]
		case m[3] == "env":
			return w.getenv(m[4])
		}
		body, err := w.read(w.userFile(m[4]))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(body))
	})
}

func itoa(i int) string { return strconv.Itoa(i) }
