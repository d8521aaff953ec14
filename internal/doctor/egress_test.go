package doctor

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/config"
)

func TestCheckEgress(t *testing.T) {
	for _, c := range []struct {
		egress    config.Egress
		isolation string
		env       map[string]string
		ok        bool
		want      string
	}{
		{config.Egress{Policy: "open"}, "box", nil, true, "open: agents reach every public address"},
		{config.Egress{Policy: "open", Private: []string{"db:5432"}}, "box", nil, true, "open: agents reach every public address, and on this machine and its network db:5432"},
		{config.Egress{Policy: "list"}, "box", nil, true, "list: agents reach their models and nothing else: egress.names is empty"},
		{config.Egress{Policy: "list", Names: []string{"a.com", "*.b.com"}}, "box", nil, true, "list: agents reach their models and a.com, *.b.com"},
		{config.Egress{Policy: "gateway", Private: []string{"db:5432"}}, "box", nil, true, "gateway: agents reach their models only"},
		{config.Egress{Policy: "none"}, "box", nil, true, "none: agents reach nothing, not even their models"},
		{config.Egress{Policy: "gateway"}, "box", map[string]string{"HTTPS_PROXY": "http://me:secret@proxy:3128"}, true, "gateway: agents reach their models only, through proxy:3128"},
		{config.Egress{Policy: "none"}, "none", nil, false, "executor.isolation is none: agents use this machine's network whatever egress.policy says"},
	} {
		cfg := config.Default()
		cfg.Egress, cfg.Executor.Isolation = c.egress, c.isolation
		f := checkEgress(&cfg, func(k string) string { return c.env[k] })
		if f.OK != c.ok || f.Found+f.Problem != c.want || !f.OK && f.Fix == "" {
			t.Errorf("%+v: %+v", c.egress, f)
		}
	}
	bad := config.Default()
	f := checkEgress(&bad, func(k string) string { return map[string]string{"HTTPS_PROXY": "http://me:secret@pro xy"}[k] })
	if f.OK || strings.Contains(f.Problem, "secret") {
		t.Errorf("invalid proxy: %+v", f)
	}
}
