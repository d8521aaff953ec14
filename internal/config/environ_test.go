package config

import (
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
)

// A misspelt variable is refused with the one that was meant; others are let be.
func TestMisspeltVariables(t *testing.T) {
	for env, hint := range map[string]string{
		"THOLE_HTPP_LISTEN=x": "THOLE_HTTP_LISTEN", "THOLE_HOEM=/x": "THOLE_HOME", "THOLE_TURNS_MAXRUNNING=1": "THOLE_TURNS_MAX_RUNNING", "THOLE_EXECUTOR_FAVOURITES=red": "keys of executor",
	} {
		err := CheckEnviron([]string{"PATH=/bin", env})
		if name, _, _ := strings.Cut(env, "="); err == nil || thole.CodeOf(err) != thole.CodeInvalid || !strings.Contains(err.Error(), name) || !strings.Contains(thole.HintOf(err), hint) {
			t.Errorf("%s: %v, %s", env, err, thole.HintOf(err))
		}
	}
	c := Default()
	for _, key := range c.keys() {
		if err := CheckEnviron([]string{Variable(key) + "=x"}); err != nil {
			t.Error(err)
		}
	}
	if err := CheckEnviron([]string{"THOLE_HOME=/x", "THOLE_TOKEN=t", "THOLE_SOAK=1", "THOLE_TEST_BINARY=x", "THOLE_MY_PROJECT=1", "OTHER=1"}); err != nil {
		t.Error(err)
	}
}

func TestMisspeltKeysAndPorts(t *testing.T) {
	c := Default()
	c.origin = map[string]string{}
	err := c.decode("config.toml", "[http]\nlisten_on = \"x\"\n[turns]\nmax_runnng = 1\n")
	if err == nil {
		t.Fatal("accepted")
	}
	err = c.decode("config.toml", "[turns]\nmax_runnng = 1\n")
	if hint := thole.HintOf(err); !strings.Contains(hint, "did you mean turns.max_running?") {
		t.Errorf("%v: %s", err, hint)
	}
	for listen, problem := range map[string]string{"127.0.0.1:99999": `invalid port "99999"`, "127.0.0.1:abc": `invalid port "abc"`, "127.0.0.1:-1": `invalid port "-1"`, "localhost": "HOST:PORT", "[::1]:0": "", "127.0.0.1:65535": ""} {
		c := Default()
		c.HTTP.Listen = listen
		if err := c.Validate(); (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", listen, err)
		}
	}
}
