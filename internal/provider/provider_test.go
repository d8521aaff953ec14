package provider_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

func TestProfileTable(t *testing.T) {
	for _, name := range []string{"codex", "claude", "opencode", "test"} {
		rows := provider.Profiles(name)
		if len(rows) != 4 {
			t.Errorf("%s has %d rows", name, len(rows))
		}
		for _, row := range rows {
			if got := provider.Native(name, row.Profile); got != row.Native {
				t.Errorf("%s: native of %s is %s", name, row.Profile, got)
			}
			if got := provider.Neutral(name, thole.Profile(row.Native)); got != row.Profile {
				t.Errorf("%s: %s does not pass through: neutral %s, want %s", name, row.Native, got, row.Profile)
			}
		}
		if got := provider.Neutral(name, ""); got != thole.ProfileAsk {
			t.Errorf("%s: the default is %s", name, got)
		}
		if got := provider.Native(name, "own-mode"); got != "own-mode" {
			t.Errorf("%s: a native value became %s", name, got)
		}
	}
}

func TestCodes(t *testing.T) {
	for status, want := range map[int]thole.ErrorCode{
		400: thole.ErrBadRequest, 401: thole.ErrAuth, 403: thole.ErrAuth, 404: thole.ErrBadRequest, 413: thole.ErrContextTooLong,
		429: thole.ErrRateLimit, 500: thole.ErrOverloaded, 503: thole.ErrOverloaded, 529: thole.ErrOverloaded, 0: thole.ErrNetwork,
	} {
		if got := provider.CodeForStatus(status); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
	for text, want := range map[string]thole.ErrorCode{
		"Prompt is too long: 9 > 5":   thole.ErrContextTooLong,
		"You've hit your usage limit": thole.ErrRateLimit,
		"Invalid API key":             thole.ErrAuth,
		"Overloaded":                  thole.ErrOverloaded,
		"stream disconnected":         thole.ErrNetwork,
		"entirely new":                "",
	} {
		if got, _ := provider.CodeForText(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, code := range []thole.ErrorCode{thole.ErrAuth, thole.ErrRateLimit, thole.ErrOverloaded, thole.ErrContextTooLong, thole.ErrModelRefused,
		thole.ErrNetwork, thole.ErrToolFailed, thole.ErrProviderCrashed, thole.ErrCancelled, thole.ErrBadRequest} {
		if provider.Failure(code, "m", 0).Hint == "" {
			t.Errorf("%s has no hint", code)
		}
	}
}

func TestLogin(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".codex", "auth.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(path, s string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path, `{"OPENAI_API_KEY": "sk-3", "more": "secret"}`)
	env := map[string]string{"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2", "AWS_SECRET_ACCESS_KEY": "no business"}
	l := provider.Login{Home: home, Getenv: func(k string) string { return env[k] }}
	g, err := l.For(context.Background(), provider.For{Provider: "codex"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(g.Files["auth.json"]); strings.Join(strings.Fields(got), "") != `{"OPENAI_API_KEY":"sk-3"}` || len(g.Env) != 1 || g.Env["OPENAI_API_KEY"] != "sk-1" {
		t.Errorf("grant %+v", g)
	}
	if g, err := l.For(context.Background(), provider.For{Provider: "claude"}); err != nil || len(g.Files) != 0 || g.Env["ANTHROPIC_API_KEY"] != "sk-2" {
		t.Errorf("grant %+v, %v", g, err)
	}
	write(path, "not a login")
	if g, err := l.For(context.Background(), provider.For{Provider: "codex"}); err == nil {
		t.Errorf("what nobody can read was handed in: %+v", g)
	}
	auth := filepath.Join(t.TempDir(), "auth")
	if err := (provider.Grant{Files: map[string][]byte{"../x": nil}}).Place(auth); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("escape: %v", err)
	}
}
