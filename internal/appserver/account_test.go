package appserver_test

import (
	"testing"

	"github.com/tholehq/thole/internal/provider"
)

// A client reads what pays for the agent of its thread, and before it has one, of its new
// threads. Nobody has to sign in.
func TestAccountOfTheAgent(t *testing.T) {
	b := newBareWith(t, nil, func() []provider.Info {
		return []provider.Info{{Name: "test", Available: true}, {Name: "codex", Available: true}, {Name: "claude", Available: true}, {Name: "opencode", Available: true}}
	})
	b.pays = map[string]string{"claude": "apiKey", "codex": "chatgpt"}
	tui := connect(t, b.stream())
	tui.ok("initialize", `{"clientInfo":{"name":"codex-tui","version":"0.166.0"}}`)
	for _, c := range []struct{ model, account, tui string }{
		{"", "", ""},
		{"claude/default", "apiKey", "apiKey"},
		{"opencode/default", "", ""},
		{"codex/default", "chatgpt", "apiKey"}, // a TUI would ask services of ChatGPT
	} {
		w, other := b.join(), ""
		if c.model != "" {
			other = w.thread(`{"model":"` + c.model + `"}`)
			tui.ok("thread/read", ofThread(other))
		}
		read := func(w *wire) string {
			a := w.ok("account/read", `{}`)
			if a["requiresOpenaiAuth"] != false {
				t.Errorf("%s: a client has to sign in: %v", c.model, a)
			}
			account, _ := a["account"].(map[string]any)
			kind, _ := account["type"].(string)
			return kind
		}
		if got := read(w); got != c.account {
			t.Errorf("%s is paid by %q, want %q", c.model, got, c.account)
		}
		if got := read(tui); got != c.tui {
			t.Errorf("a TUI that opens a thread of %s reads %q, want %q", c.model, got, c.tui)
		}
	}
}
