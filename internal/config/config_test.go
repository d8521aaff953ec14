package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
)

func noEnv(string) string { return "" }

func env(m map[string]string) func(string) string { return func(k string) string { return m[k] } }

func write(t *testing.T, text string) string {
	t.Helper()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

func TestLayersOverrideInOrderAndRememberWhere(t *testing.T) {
	home := write(t, "[executor]\nidle_stop = '5m'\nremove_after = '1h'\n[turns]\nmax_running = 3\n")
	c, err := Load(home, env(map[string]string{"THOLE_TURNS_MAX_RUNNING": "4", "THOLE_EXECUTOR_IDLE_STOP": "6m"}), map[string]string{"turns.max_running": "5"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Executor.RemoveAfter != time.Hour || c.Executor.IdleStop != 6*time.Minute || c.Turns.MaxRunning != 5 {
		t.Fatalf("got %+v %+v", c.Executor, c.Turns)
	}
	for key, want := range map[string]string{
		"executor.remove_after": File(home), "executor.idle_stop": "THOLE_EXECUTOR_IDLE_STOP", "turns.max_running": "flag", "log.level": "default",
	} {
		if got := c.Origin(key); got != want {
			t.Errorf("origin of %s = %q, want %q", key, got, want)
		}
	}
}

func TestBadInputNamesTheKey(t *testing.T) {
	for name, tc := range map[string]struct {
		file  string
		env   map[string]string
		flags map[string]string
		want  string
		hint  string
	}{
		"unknown key":           {file: "[executor]\nidel_stop = '5m'", want: "unknown key executor.idel_stop", hint: "idle_stop"},
		"unknown table":         {file: "[web]\nport = 1", want: "unknown key web", hint: "http"},
		"bad syntax":            {file: "[executor", want: "line 1"},
		"wrong type":            {file: "[turns]\nmax_running = 'many'", want: "max_running"},
		"bad duration in env":   {env: map[string]string{"THOLE_TURNS_TIMEOUT": "soon"}, want: "config key turns.timeout (from THOLE_TURNS_TIMEOUT) must be a duration"},
		"out of range":          {file: "[turns]\nmax_running = 0", want: "config key turns.max_running", hint: "then it is 16"},
		"unknown flag":          {flags: map[string]string{"turns.maximum": "1"}, want: "unknown config key turns.maximum"},
		"not an address":        {flags: map[string]string{"http.listen": "nowhere"}, want: "http.listen"},
		"not in the set":        {flags: map[string]string{"log.level": "loud"}, want: "log.level"},
		"kept too briefly":      {flags: map[string]string{"delivery.keep": "71h"}, want: "delivery.keep"},
		"window under idle":     {flags: map[string]string{"delivery.observation_window": "1m"}, want: "delivery.observation_window"},
		"s3 without a bucket":   {flags: map[string]string{"objects.kind": "s3"}, want: "objects.bucket"},
		"s3 with half a key":    {file: s3Bucket + `access_key = "a"`, want: "objects.secret_key_file"},
		"s3 with no key":        {file: s3Bucket + `credentials = "static"`, want: "objects.access_key"},
		"s3 in no style":        {file: s3Bucket + `style = "tilde"`, want: "objects.style"},
		"no such egress policy": {flags: map[string]string{"egress.policy": "some"}, want: "config key egress.policy (from flag) must be one of none, gateway, list, open", hint: "then it is open"},
		"egress name with path": {file: "[egress]\nnames = ['example.com/x']", want: `egress.names`},
		"private without port":  {file: "[egress]\nprivate = ['db']", want: `has an invalid target "db": must be HOST:PORT`},
		"a path from here":      {file: "[executor]\npaths = ['tools']", want: `config key executor.paths`},
		"a path with turns":     {file: "[executor]\npaths = ['/a/../b']", want: "no absolute path"},
		"programs from here":    {file: "[executor]\npath = 'bin'", want: `config key executor.path`},
		"programs by number":    {file: "[executor]\npath = 3", want: "executor.path must be"},
		"a variable's value":    {file: "[executor]\nenv = ['A=b']", want: `no name of a variable: "A=b"`},
		"a variable of thole's": {file: "[executor]\nenv = ['HTTPS_PROXY']", want: "thole sets itself"},
		"certificates here":     {file: "[egress]\nca_file = 'ca.pem'", want: "config key egress.ca_file"},
		"private metadata":      {file: "[egress]\nprivate = ['169.254.169.254:80']", want: "never reachable"},
		"number that is a word": {flags: map[string]string{"delivery.max_bytes": "1k"}, want: "whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(write(t, tc.file), env(tc.env), tc.flags)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(thole.HintOf(err), tc.hint) || thole.CodeOf(err) != thole.CodeInvalid {
				t.Fatalf("got %v (%s), want %q", err, thole.CodeOf(err), tc.want)
			}
		})
	}
}

const s3Bucket = "[objects]\nkind = \"s3\"\nendpoint = \"http://127.0.0.1:9000\"\nbucket = \"b\"\n"

func TestEveryKeyCanBeSetFromTheEnvironment(t *testing.T) {
	c := Default()
	for _, e := range c.Entries() {
		vars := map[string]string{Variable(e.Key): e.Value}
		got, err := Load(t.TempDir(), env(vars), nil)
		if err != nil {
			t.Fatalf("%s: %v", e.Key, err)
		}
		if e.Value != "" && got.Origin(e.Key) != Variable(e.Key) {
			t.Errorf("%s did not take %s", e.Key, Variable(e.Key))
		}
	}
}

// Where programs are looked for is a word, or a list in which words may stand.
func TestPath(t *testing.T) {
	for text, want := range map[string]string{"": "inherit", "path = 'system'": "system", "path = ['/srv/bin', 'inherit']": "/srv/bin,inherit", "path = []": ""} {
		c, err := Load(write(t, "[executor]\n"+text), noEnv, nil)
		if err != nil || strings.Join(c.Executor.Path, ",") != want {
			t.Errorf("%s: %q, %v", text, c.Executor.Path, err)
		}
	}
}

func TestUpstreams(t *testing.T) {
	const text = "[[gateway.upstreams]]\nname = \"a\"\ndialect = \"anthropic\"\nbase_url = \"https://llm.example.com/v1\"\nkey = \"env:KEY\"\nfirst_byte = \"30s\"\n"
	c, err := Load(write(t, text), noEnv, nil)
	if err != nil || len(c.Gateway.Upstreams) != 1 || c.Gateway.Upstreams[0].FirstByte != 30*time.Second {
		t.Fatalf("%+v, %v", c, err)
	}
	const inline = `[{name="b", dialect="openai", base_url="https://llm.example.com/v1"}, {name="c", dialect="openai-chat", base_url="http://127.0.0.1:1/v1"}]`
	c, err = Load(write(t, text), env(map[string]string{"THOLE_GATEWAY_UPSTREAMS": inline, "THOLE_GATEWAY_RECORD": "true"}), nil)
	if err != nil || len(c.Gateway.Upstreams) != 2 || c.Gateway.Upstreams[1].Name != "c" || !c.Gateway.Record || c.Origin("gateway.upstreams") != "THOLE_GATEWAY_UPSTREAMS" {
		t.Fatalf("%+v, %v", c, err)
	}
	for bad, want := range map[string]string{
		`[{name="b", dialect="telepathy", base_url="https://x.example.com/v1"}]`:        "dialect",
		`[{name="b", dialect="openai", base_url="https://x.example.com/v1", key="sk"}]`: "never the key itself",
		`[{name="b", url="https://x.example.com/v1"}]`:                                  "unknown key upstreams.url",
		`{`: "array of tables",
	} {
		if _, err := Load(t.TempDir(), env(map[string]string{"THOLE_GATEWAY_UPSTREAMS": bad}), nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "gateway.upstreams") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestAskRules(t *testing.T) {
	for rule, ok := range map[string]bool{"8h deny": true, "1m  fail": true, "90s cancel": true, "wait": true, "": false, "8h": false, "8h allow": false, "8h wait": false, "-1h deny": false, "0s deny": false, "deny 8h": false} {
		if _, _, err := AskRule(rule); (err == nil) != ok {
			t.Errorf("%q: %v", rule, err)
		}
	}
	c := Default()
	if c.Asks.Command = "8h allow"; c.Validate() == nil {
		t.Error("a rule that says yes for nobody is accepted")
	}
}

// Every key is documented with its default, and no other.
func TestKeysAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	c := Default()
	for _, e := range c.Entries() {
		if row := "\n| `" + e.Key + "` | " + e.Value + " |"; !strings.Contains(string(b), row) && !strings.Contains(string(b), strings.ReplaceAll(row, "|  |", "| |")) {
			t.Errorf("%s (default %q) is not documented", e.Key, e.Value)
		}
	}
	for key := range meanings {
		if !slices.Contains(c.keys(), key) {
			t.Errorf("%s has a meaning and does not exist", key)
		}
	}
	for _, key := range c.keys() {
		if meanings[key] == "" {
			t.Errorf("%s has no meaning", key)
		}
	}
	if n := strings.Count(string(b), "\n| `"); n != len(c.Entries()) {
		t.Errorf("%d keys are documented, %d exist", n, len(c.Entries()))
	}
}

func TestHome(t *testing.T) {
	if _, err := HomeDir("", noEnv); err == nil {
		t.Fatal("a home out of nothing")
	}
	if got, _ := HomeDir("", env(map[string]string{"HOME": "/u"})); got != "/u/.thole" {
		t.Fatal(got)
	}
	if got, _ := HomeDir("/f", env(map[string]string{"HOME": "/u", "THOLE_HOME": "/e"})); got != "/f" {
		t.Fatal(got)
	}
}

// A configuration that knows the key which executor.isolation replaced never ends up
// with less than it said.
func TestBubblewrapIsRetired(t *testing.T) {
	for _, value := range []string{"on", "auto"} {
		for _, c := range []struct{ file, variable string }{{"[executor]\nbubblewrap = '" + value + "'", ""}, {"", value}} {
			got, err := Load(write(t, c.file), env(map[string]string{"THOLE_EXECUTOR_BUBBLEWRAP": c.variable}), nil)
			if err != nil || got.Executor.Isolation != "box" {
				t.Errorf("%s: %v", value, err)
			}
		}
	}
	for _, c := range []struct{ file, variable, want string }{
		{"[executor]\nbubblewrap = 'off'", "", "off is not carried over"}, {"", "off", "off is not carried over"},
		{"[executor]\nbubblewrap = 'maybe'", "", "executor.bubblewrap"}, {"[executor]\nbubblewrap = 'on'\nbubble = 1", "", "executor.bubble"},
		{"[executor]\nisolation = 'off'", "", "executor.isolation"}, {"[executor]\nisolation = ''", "", "executor.isolation"},
	} {
		_, err := Load(write(t, c.file), env(map[string]string{"THOLE_EXECUTOR_BUBBLEWRAP": c.variable}), nil)
		if thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(err.Error(), c.want) || thole.HintOf(err) == "" {
			t.Errorf("%+v: %v", c, err)
		}
	}
	got, err := Load(write(t, "[executor]\nisolation = 'none'"), noEnv, nil)
	if err != nil || got.Executor.Isolation != "none" {
		t.Error(got, err)
	}
}
