package cli

import "testing"

// The name of an agent alone once went to Codex, as a model that it does not have.
func TestModelName(t *testing.T) {
	for said, want := range map[string]string{
		"claude": "claude/default", "codex": "codex/default", "opencode": "opencode/default", "claude/opus": "claude/opus",
		"gpt-5.5": "gpt-5.5", "codex/a/b": "codex/a/b", "Claude": "Claude",
	} {
		var m modelName
		if err := m.Set(said); err != nil || m.String() != want {
			t.Errorf("%s: %q, %v; want %q", said, m, err, want)
		}
	}
	var m modelName
	if err := m.Set("foo/bar"); err == nil || m != "" {
		t.Errorf("foo/bar: %q, %v", m, err)
	}
}
