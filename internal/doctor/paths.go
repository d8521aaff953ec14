package doctor

import (
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/executor/local"
)

// checkPaths says what of this machine a person shows to agents, besides the system.
func checkPaths(cfg *config.Config) Finding {
	f := Finding{Part: "paths", OK: true, Found: "executor.paths names none", Disables: "turns: no executor starts"}
	shown := cfg.Executor.Paths
	if len(shown) > 0 {
		f.Found = "agents read " + strings.Join(shown, ", ")
	}
	var err error
	for _, p := range shown {
		if err == nil {
			err = local.CheckPath(p, cfg.Home)
		}
	}
	if cfg.Egress.CAFile != "" {
		f.Found += ", and trust " + cfg.Egress.CAFile
		if err == nil {
			_, err = local.CheckCA(cfg.Egress.CAFile)
		}
	}
	if err != nil {
		f.OK, f.Problem, f.Fix = false, err.Error(), thole.HintOf(err)
	}
	return f
}
