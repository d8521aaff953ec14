package cli

import (
	"context"
	"errors"
	"html"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/system"
	"github.com/tholehq/thole/web"
)

func newUp(env *Env) *cobra.Command {
	var demo, noBrowser bool
	var listen, demoModel string
	cmd := &cobra.Command{
		Use: "up", Args: cobra.NoArgs,
		Short: "Start everything on this machine and print the address of the web page",
		RunE: func(cmd *cobra.Command, _ []string) error {
			flags := map[string]string{}
			if listen != "" {
				flags["http.listen"] = listen
			}
			cfg, err := env.config(flags)
			if err != nil {
				return err
			}
			if err := refuseSecond(cmd.Context(), cfg.Home); err != nil {
				return err
			}
			log := env.logger(cfg)
			return up(cmd.Context(), env, system.Options{Config: cfg, Role: "up", Takeover: true, Demo: demo || demoModel != "", DemoModel: demoModel, Log: log, UI: web.Dist()}, !noBrowser)
		},
	}
	cmd.Flags().BoolVar(&demo, "demo", false, "use the scripted model: no agent login, no network, no key")
	cmd.Flags().StringVar(&demoModel, "demo-model", "", "`URL` of a running thole demo-model to use; implies --demo")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "do not open the browser")
	cmd.Flags().StringVar(&listen, "listen", "", "address of the web page (default http.listen, 127.0.0.1:7433)")
	return cmd
}

// refuseSecond says so when thole is up already, and when that cannot be known. An
// on-demand daemon is no obstacle: it hands over.
func refuseSecond(ctx context.Context, home string) error {
	var st wire.Status
	err := (&daemonclient.Client{Home: home, NoStart: true, Wait: true}).Call(ctx, wire.DaemonStatus, struct{}{}, &st)
	switch {
	case errors.Is(err, daemonclient.ErrNobody):
		return nil
	case err == nil && st.Role == "up":
		return daemon.Up(home, st.PID)
	}
	return err
}

func up(ctx context.Context, env *Env, o system.Options, browser bool) error {
	// The first signal drains; the second one ends at once.
	defer context.AfterFunc(ctx, func() {
		putln(env.Err, "stopping; press Ctrl-C again to stop at once")
		second := make(chan os.Signal, 1)
		signal.Notify(second, os.Interrupt, syscall.SIGTERM)
		go func() {
			<-second
			os.Exit(130)
		}()
	})()
	putln(env.Err, "starting thole on "+o.Config.Home)
	o.Web = func(page system.Page) {
		_ = env.print(page, func(w io.Writer) {
			if page.Warning != "" {
				putln(w, "warning: "+page.Warning)
			}
			putln(w, "thole is up: "+page.URL)
			if !strings.HasSuffix(page.Base, page.Listen) {
				putln(w, "It listens on "+page.Listen+".")
			}
			if o.Demo {
				putln(w, "The scripted agent repeats what you send, and does what follows sim: as in \"sim: run ls -la ;; write notes.txt hello\".")
			}
			putln(w, "The link logs one browser in; `thole login` makes another. Ctrl-C stops.")
		})
		if browser {
			openBrowser(filepath.Join(o.Config.Home, "login.html"), page.URL)
		}
	}
	defer func() { _ = os.Remove(filepath.Join(o.Config.Home, "login.html")) }()
	o.Leaves = func(left []executors.Left) { sayLeft(env.Err, left, o.Config.Executor.OrphanTimeout, time.Now()) }
	_, err := system.Run(ctx, o)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

// sayLeft says what goes on without us, until when, and how to end it.
func sayLeft(w io.Writer, left []executors.Left, after time.Duration, now time.Time) {
	if len(left) == 0 {
		return
	}
	putf(w, "%d executors go on until %s (executor.orphan_timeout is %s) or the next thole up:\n", len(left), now.Add(after).Format(time.DateTime), after)
	for _, l := range left {
		what := "idle"
		switch {
		case l.Waits:
			what = "turn " + string(l.Turn) + " waits for an answer"
		case l.Turn != "":
			what = "a turn is running, " + string(l.Turn)
		}
		putf(w, "  thread %s, executor %s: %s\n", l.Thread, l.Executor, what)
	}
	putln(w, "stop them now with: thole thread close --all --interrupt")
}

// openBrowser does its best; the address is on the screen anyway. The browser is
// given a file that only the user can read, because every user of the machine can
// read command lines, and the link is a secret until it was used.
func openBrowser(file, link string) {
	name := "xdg-open"
	if runtime.GOOS == "darwin" {
		name = "open"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return
	}
	page := `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=` + html.EscapeString(link) + `"><title>thole</title>`
	if atomicfile.Write(file, []byte(page), 0o600) != nil {
		return
	}
	cmd := exec.Command(path, file)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}
