package execserver

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/tholehq/thole/protocol/exec"
)

// FuzzStartParams must neither panic nor accept a start without its members.
func FuzzStartParams(f *testing.F) {
	f.Add([]byte(`{"processId":"p","argv":["true"],"cwd":"file:///","env":{},"tty":false}`))
	f.Add([]byte(`{"processId":"p","argv":[],"cwd":"file:///","env":{},"tty":false,"sandbox":{"permissions":{"type":"managed"}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			t.Skip()
		}
		var p exec.StartParams
		if decode(raw, &p) == nil {
			var found map[string]json.RawMessage
			_ = json.Unmarshal(raw, &found)
			for _, k := range []string{"processId", "argv", "cwd", "env", "tty"} {
				if !present(found[k]) {
					t.Fatalf("%s accepted without %s", raw, k)
				}
			}
		}
	})
}

func TestEnviron(t *testing.T) {
	own := []string{"PATH=/bin", "HOME=/h", "API_KEY=k", "FOO=1", "foobar=2", "node_repl_auth_token=x"}
	all := &exec.EnvPolicy{Inherit: "all"}
	for name, c := range map[string]struct {
		policy *exec.EnvPolicy
		env    map[string]string
		want   []string
	}{
		"no policy":    {nil, map[string]string{"A": "1"}, []string{"A=1"}},
		"all":          {all, nil, []string{"FOO=1", "HOME=/h", "PATH=/bin", "foobar=2"}},
		"with secrets": {&exec.EnvPolicy{Inherit: "all", IgnoreDefaultExcludes: true}, nil, []string{"API_KEY=k", "FOO=1", "HOME=/h", "PATH=/bin", "foobar=2"}},
		"core":         {&exec.EnvPolicy{Inherit: "core"}, map[string]string{"HOME": "/x"}, []string{"HOME=/x", "PATH=/bin"}},
		"exclude":      {&exec.EnvPolicy{Inherit: "all", Exclude: []string{"fo*", "P?TH"}}, nil, []string{"HOME=/h"}},
		"only":         {&exec.EnvPolicy{Inherit: "all", IncludeOnly: []string{"S", "h*"}, Set: map[string]string{"S": "v", "T": "w"}}, map[string]string{"E": "1"}, []string{"E=1", "HOME=/h", "S=v"}},
		"scrubbed":     {nil, map[string]string{"OPENAI_identity_token_file": "f", "K": "1"}, []string{"K=1"}},
	} {
		got, e := environ(c.policy, c.env, own)
		if e != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, e, c.want)
		}
	}
	if _, e := environ(&exec.EnvPolicy{Inherit: "some"}, nil, own); e == nil || e.Code != exec.CodeInvalidParams {
		t.Errorf("unknown inherit: %v", e)
	}
}
