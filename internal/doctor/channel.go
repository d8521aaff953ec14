package doctor

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/channel/turnstart"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider/table"
)

// checkChannel asks the installed codex, in an empty home of its own, whether
// results can be delivered into its terminals.
func checkChannel(ctx context.Context, cfg *config.Config) Finding {
	f := Finding{Part: "codex terminals", Disables: "delivery of results into Codex terminals (thole codex)"}
	path, err := exec.LookPath(cmp.Or(cfg.Providers.Codex, table.Contract))
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		f.Problem, f.Fix = "codex is not installed", table.Of(table.Contract).Install
		return f
	}
	how, err := probeCodex(ctx, path)
	if err != nil {
		f.Found, f.Problem, f.Fix = path, err.Error(), "update codex: "+table.Of(table.Contract).Install
		return f
	}
	f.OK, f.Found = true, how
	return f
}

func probeCodex(ctx context.Context, path string) (string, error) {
	home, err := os.MkdirTemp("", "thole-doctor")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	p, err := process.Start(process.Spec{
		Path: path, Args: []string{"app-server"}, Dir: home, Env: map[string]string{"CODEX_HOME": home, "HOME": home, "PATH": os.Getenv("PATH")},
	})
	if err != nil {
		return "", err
	}
	defer func() {
		p.Kill()
		_ = p.Wait(context.WithoutCancel(ctx))
		_ = p.Stdout.Close()
	}()
	client, err := appclient.Pipe(ctx, p.Stdout, p.Stdin, turnstart.Options())
	if err != nil {
		return "", err
	}
	defer client.Close()
	how, err := turnstart.Capable(ctx, client)
	return client.Server().UserAgent + ", " + how, err
}
