package system

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/audit"
	"github.com/tholehq/thole/internal/authz"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/changes"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/strictjson"
)

// methodsPath is where other servers call methods of the home's socket, and maxCall how much
// they may send.
const (
	methodsPath = homePath + "/methods"
	maxCall     = 1 << 20
)

// Methods of the home's socket about what is on one server's machine. Those that only read it,
// or begin a turn, are answered by that server wherever they are asked; the others read or write
// directories of the machine that they are asked on.
var (
	anywhere = []string{changes.MethodDiff, changes.MethodUndo, changes.MethodUndone, executors.MethodCalls}
	onlyHere = []string{changes.MethodApply, changes.MethodPull, changes.MethodMerge, changes.MethodPush, changes.MethodPullRequest}
)

// threadCall is a call of another server's method.
type threadCall struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// wherever has methods that are about the files of one machine answered there, or refused with
// where that is.
func (p *peers) wherever(of ...map[string]daemon.Method) map[string]daemon.Method {
	all := map[string]daemon.Method{}
	for _, m := range of {
		maps.Copy(all, m)
	}
	if p == nil {
		return all
	}
	p.answers = map[string]daemon.Method{}
	out := maps.Clone(all)
	for _, name := range anywhere {
		p.answers[name] = all[name]
		out[name] = func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			to, err := p.otherServer(ctx, params)
			if err != nil {
				return nil, err
			}
			if to == nil {
				return all[name](ctx, actor, params)
			}
			var result json.RawMessage
			return result, p.Ask(ctx, *to, http.MethodPost, methodsPath, threadCall{name, params}, &result)
		}
	}
	for _, name := range onlyHere {
		out[name] = func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			to, err := p.otherServer(ctx, params)
			if err != nil {
				return nil, err
			}
			if to == nil {
				return all[name](ctx, actor, params)
			}
			return nil, thole.Errorf(thole.CodeConflict, "the files of this thread are on server %s at %s", to.ID, to.Place).
				WithHint("run it there: what it brings out goes into directories of that machine; thole thread diff --patch shows the changes here too")
		}
	}
	return out
}

// otherServer is the one that has the files of the thread that a call names, nil for this one.
func (p *peers) otherServer(ctx context.Context, params json.RawMessage) (*roster.Server, error) {
	var of struct {
		ThreadID thole.ThreadID `json:"thread_id"`
		Thread   thole.ThreadID `json:"thread"`
	}
	if strictjson.Unmarshal(params, &of) != nil {
		return nil, nil //nolint:nilerr // the method says what is wrong with it
	}
	return p.serverOf(ctx, cmp.Or(of.ThreadID, of.Thread))
}

// answer is what another server's user of its home is answered: who has a server's socket is the
// user of the machine at all of them.
func (p *peers) answer(ctx context.Context, c threadCall) (any, error) {
	m, ok := p.answers[c.Method]
	if !ok {
		return nil, thole.Errorf(thole.CodeUnsupported, "%s is not answered for other servers", c.Method)
	}
	ctx = audit.With(authz.Doing(ctx, daemon.ActionOf(c.Method)), audit.Source{Actor: thole.LocalActor})
	return m(ctx, thole.LocalActor, c.Params)
}
