package ownconfig

import (
	"cmp"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tholehq/thole/internal/provider/table"
)

// How is what becomes of a mapped key.
type How string

const (
	ToGateway  How = "gateway" // the gateway goes there; nothing of it is in the session
	ByConsent  How = "consent" // providers.hooks
	LikeTop    How = "like the top"
	AsFile     How = "file"      // the file that it names
	AsTexts    How = "texts"     // a list in which some are files of the user
	Inline     How = "inline"    // a text that may refer to files
	General    How = "general"   // permission rules without a general one that allows
	Plain      How = "plain"     // names with values, without those that look secret
	Program    How = "program"   // a command, alone or with its arguments
	Words      How = "words"     // arguments
	Address    How = "address"   // the URL of a server
	Values     How = "values"    // variables or headers of a server
	Variables  How = "variables" // names of variables that a server gets
	HeaderVars How = "header variables"
	BearerVar  How = "bearer variable"
)

// hows say for people what each does, and do it.
var hows map[How]mapping

type mapping struct {
	says string
	take func(w *walk, at []string, v any)
}

func init() {
	hows = map[How]mapping{
		ToGateway:  {"the gateway calls that service with the credential; the session sees neither", (*walk).toGateway},
		ByConsent:  {whyConsent, (*walk).byConsent},
		LikeTop:    {"its keys are treated as those at the top", (*walk).likeTop},
		AsFile:     {"the file it names is laid for the session", (*walk).asFile},
		AsTexts:    {"files of yours that it names are laid for the session; patterns of the project and URLs pass", (*walk).asTexts},
		Inline:     {"passed; a file of yours that it refers to is put in its place", (*walk).inline},
		General:    {"passed, after the rules of the profile; a rule for everything (`*`) that allows is refused", (*walk).general},
		Plain:      {"passed without values that look like secrets", (*walk).plainValues},
		Program:    {"passed; the server runs in the box, which must show the program", (*walk).program},
		Words:      {"passed; with an argument that looks like a secret the server is left out, unless it is in `providers.mcp_secrets`", (*walk).words},
		Address:    {"passed, and reached through the egress proxy; one with a password or a query is left out, unless it is in `providers.mcp_secrets`", (*walk).address},
		Values:     {"passed; what looks like a secret or refers to a variable only with the server in `providers.mcp_secrets`, with which agents can read it", (*walk).values},
		Variables:  {"only with the server in `providers.mcp_secrets`: the values become those of its configuration", (*walk).variables},
		HeaderVars: {"only with the server in `providers.mcp_secrets`: the values become headers of its configuration", (*walk).headerVars},
		BearerVar:  {"only with the server in `providers.mcp_secrets`: the value becomes a header of its configuration", (*walk).bearerVar},
	}
}

func (w *walk) toGateway(at []string, _ any) { w.say(at, Mapped, "goes through the gateway") }

func (w *walk) byConsent(at []string, v any) {
	if !slices.Contains(w.Hooks, w.cli) {
		w.refuse(at, "runs programs of yours; providers.hooks = [\""+w.cli+"\"] passes it")
		return
	}
	w.out.put(at, w.homely(v))
	w.say(at, Mapped, "passed by providers.hooks")
}

// homely is a value whose texts name files of the CLI's own directory where a session has
// them.
func (w *walk) homely(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, w.root(Dir)+"/", "$HOME/"+table.Of(w.cli).Home+"/")
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = w.homely(one)
		}
		return out
	case *object:
		out := newObject()
		for _, name := range v.names {
			out.set(name, w.homely(v.by[name]))
		}
		return out
	}
	return v
}

func (w *walk) likeTop(at []string, v any) {
	if o, ok := v.(*object); ok {
		w.object(at, nil, o)
		return
	}
	w.refuse(at, whyUnknown)
}

// userFile is the file of the user that a text names.
func (w *walk) userFile(name string) string {
	if rest, home := strings.CutPrefix(name, "~/"); home {
		return filepath.Join(w.Home, rest)
	}
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(w.dir, name)
}

// laid puts a file of the user next to the settings, and returns its place there.
func (w *walk) laid(at []string, name string) (string, bool) {
	from := w.userFile(name)
	body, err := w.read(from)
	if err != nil {
		w.refuse(at, w.shown(from)+" cannot be read: "+reason(err))
		return "", false
	}
	to := laidIn[w.cli] + "/" + strings.Join(append(slices.Clone(at), filepath.Base(from)), "-")
	l := w.line
	l.Key, l.Fate, l.Why = strings.Join(at, "."), Mapped, "the file "+w.shown(from)
	return to, w.lay(l, to, body)
}

func (w *walk) asFile(at []string, v any) {
	name, ok := v.(string)
	if !ok {
		w.refuse(at, whyUnknown)
		return
	}
	if to, ok := w.laid(at, name); ok {
		w.out.put(at, strings.TrimPrefix(to, path.Dir(w.line.To)+"/"))
	}
}

func (w *walk) asTexts(at []string, v any) {
	list, _ := v.([]any)
	var out []any
	for i, one := range list {
		name, ok := one.(string)
		switch {
		case !ok:
		case filepath.IsAbs(name) || strings.HasPrefix(name, "~/"):
			if to, ok := w.laid(append(slices.Clone(at), itoa(i)), name); ok {
				out = append(out, to)
			}
		default:
			out = append(out, name)
			w.say(append(slices.Clone(at), itoa(i)), Passed, "")
		}
	}
	if len(out) > 0 {
		was, _ := w.out.at(at[:len(at)-1]).by[at[len(at)-1]].([]any)
		w.out.put(at, append(slices.Clone(was), out...))
	}
}

var fileReference = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{file:([^}]+)\}`) })

func (w *walk) inline(at []string, v any) {
	text, ok := v.(string)
	if !ok {
		w.refuse(at, whyUnknown)
		return
	}
	refers, failed := false, ""
	text = fileReference().ReplaceAllStringFunc(text, func(ref string) string {
		refers = true
		from := w.userFile(strings.TrimSpace(fileReference().FindStringSubmatch(ref)[1]))
		body, err := w.read(from)
		if err != nil {
			failed = cmp.Or(failed, w.shown(from)+" cannot be read: "+reason(err))
		}
		return strings.TrimSpace(string(body))
	})
	switch {
	case failed != "":
		w.refuse(at, failed)
	case refers:
		w.out.put(at, text)
		w.say(at, Mapped, "with the text of the file that it refers to")
	default:
		w.pass(at, v)
	}
}

func (w *walk) general(at []string, v any) {
	o, isObject := v.(*object)
	if !isObject {
		if v == "allow" {
			w.refuse(at, whyProfile)
		} else {
			w.pass(at, v)
		}
		return
	}
	out := newObject()
	for _, name := range o.names {
		sub := append(slices.Clone(at), name)
		if rule := o.by[name]; name == "*" && rule != "ask" && rule != "deny" {
			w.refuse(sub, whyProfile)
		} else {
			out.set(name, rule)
			w.say(sub, Passed, "")
		}
	}
	if len(out.names) > 0 {
		w.out.put(at, out)
	}
}

func (w *walk) plainValues(at []string, v any) {
	o, ok := v.(*object)
	if !ok {
		w.refuse(at, whyUnknown)
		return
	}
	for _, name := range o.names {
		sub := append(slices.Clone(at), name)
		if s, _ := o.by[name].(string); secretName(name) || secretValue(s) {
			w.refuse(sub, "looks like a secret")
		} else {
			w.pass(sub, o.by[name])
		}
	}
}
