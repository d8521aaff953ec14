package doctor

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/egress"
)

// checkEgress says what agents reach over the network, and through what.
func checkEgress(cfg *config.Config, getenv func(string) string) Finding {
	f := Finding{Part: "egress", Disables: "every limit to what agents reach over the network"}
	if note := Unwalled(cfg.Executor); note != "" {
		f.Problem, f.Fix = "executor.isolation is none: agents use this machine's network whatever egress.policy says", "remove executor.isolation from the configuration"
		return f
	}
	c := cfg.Egress
	f.OK, f.Found = true, c.Policy+": "+map[egress.Policy]string{
		egress.None:    "agents reach nothing, not even their models",
		egress.Gateway: "agents reach their models only",
		egress.List:    fmt.Sprintf("agents reach their models and %s", orNothing(c.Names)),
		egress.Open:    "agents reach every public address",
	}[egress.Policy(c.Policy)]
	if p := egress.Policy(c.Policy); len(c.Private) > 0 && (p == egress.List || p == egress.Open) {
		f.Found += ", and on this machine and its network " + strings.Join(c.Private, ", ")
	}
	up := egress.Environment(getenv)
	if up == nil {
		return f
	}
	via, err := egress.Via(up, &url.URL{Scheme: "https", Host: "example.com:443"})
	switch {
	case err != nil:
		f.OK, f.Problem = false, err.Error()
		f.Disables, f.Fix = "connections of agents", "set HTTPS_PROXY to http://HOST:PORT"
	case via != nil:
		f.Found += ", through " + via.Host
	}
	return f
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "nothing else: egress.names is empty"
	}
	return strings.Join(names, ", ")
}
