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
	thole "github.com/tholehq/thole"
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
			sample, err := env.demoHome(demo || demoModel != "")
			if err != nil {
				return err
			}
			cfg, err := env.config(flags)
			if err != nil {
				return err
			}
			if err := refuseSecond(cmd.Context(), cfg.Home); err != nil {
				return err
			}
			log := env.logger(cfg)
			return up(cmd.Context(), env, system.Options{Config: cfg, Role: "up", Takeover: true, Demo: demo || demoModel != "", DemoModel: demoModel, Sample: sample, Log: log, UI: web.Dist()}, !noBrowser)
		},
	}
	cmd.Flags().BoolVar(&demo, "demo", false, "use the scripted model: no agent login, no network, no key; in a home of its own unless one is named")
	cmd.Flags().StringVar(&demoModel, "demo-model", "", "`URL` of a running thole demo-model to use; implies --demo")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "do not open the browser")
	cmd.Flags().StringVar(&listen, "listen", "", "address of the web page (default http.listen, 127.0.0.1:7433)")
	return cmd
}

// demoHome gives a demo a home of its own, so that it leaves nothing in the user's, and
// returns where its sample repository is. A home that is named is used as it is.
func (e *Env) demoHome(demo bool) (sample string, err error) {
	if !demo || e.Home != "" || os.Getenv("THOLE_HOME") != "" {
		return "", nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", thole.Errorf(thole.CodeInvalid, "no home directory: %w", err).WithHint("name a home for the demo with --home")
	}
	e.Home = filepath.Join(user, ".thole-demo")
	return e.Home + "-sample", nil
}

// refuseSecond says so when thole is up already, and when that cannot be known. An
// on-demand daemon is no obstacle: it hands over.
func refuseSecond(ctx context.Context, home string) error {
	var st wire.Status
	err := (&daemonclient.Client{Home: home, NoStart: true, Wait: true}).Call(ctx, wire.DaemonStatus, struct{}{}, &st)
	switch {
	case errors.Is(err, daemonclient.ErrNobody):
		return nil
	case err == nil && st.Role != "daemon":
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
	if !o.Demo && !env.agentInstalled(ctx, o.Config.Providers) {
		putln(env.Err, "warning: no turn can run yet: there is no agent on this machine")
		putln(env.Err, "  try:", hang(noAgent("").Hint))
	}
	putln(env.Err, "starting thole on "+o.Config.Home)
	o.Web = func(page system.Page) {
		_ = env.print(page, func(w io.Writer) {
			if page.Warning != "" {
				putln(w, "warning: "+page.Warning)
			}
			putln(w, "thole is up: "+page.URL)
			if page.Setup != "" {
				putln(w, "For several users, set it up once within the hour: "+page.Setup)
			}
			if !strings.HasSuffix(page.Base, page.Listen) {
				putln(w, "It listens on "+page.Listen+".")
			}
			if page.Relay != "" {
				putln(w, "Its relay for exec-servers is "+page.Relay+", for who has a token of "+o.Config.Relay.TokensFile+".")
			}
			switch {
			case o.Sample != "":
				putln(w, "This is a demo, in a home of its own: "+o.Config.Home+". Its threads work on copies of the sample repository "+o.Sample+".")
				putln(w, "Say \"fix the greeting\" on the page, or run: "+env.program("run \"fix the greeting\""))
			case o.Demo:
				putln(w, "The scripted agent repeats what you send, and does what follows sim: as in \"sim: run ls -la ;; write notes.txt hello\".")
			}
			putln(w, "The link logs one browser in; `"+env.program("login")+"` makes another. Ctrl-C stops.")
		})
		if browser {
			openBrowser(filepath.Join(o.Config.Home, "login.html"), page.URL)
		}
	}
	defer func() { _ = os.Remove(filepath.Join(o.Config.Home, "login.html")) }()
	o.Leaves = func(left []executors.Left) { env.sayLeft(env.Err, left, o.Config.Executor.OrphanTimeout, time.Now()) }
	_, err := system.Run(ctx, o)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

// sayLeft says what goes on without us, until when, and how to end it.
func (e *Env) sayLeft(w io.Writer, left []executors.Left, after time.Duration, now time.Time) {
	if len(left) == 0 {
		return
	}
	goOn := "go on"
	if len(left) == 1 {
		goOn = "goes on"
	}
	putf(w, "%s %s until %s (executor.orphan_timeout is %s) or the next %s:\n", count(len(left), "executor"), goOn, now.Add(after).Format(time.DateTime), after, e.program("up"))
	jobs := false
	for _, l := range left {
		var does []string
		switch {
		case l.Waits:
			does = append(does, "turn "+string(l.Turn)+" waits for an answer")
		case l.Turn != "":
			does = append(does, "a turn is running, "+string(l.Turn))
		}
		for _, job := range l.Jobs {
			does, jobs = append(does, "job "+string(job)+" is running"), true
		}
		if len(does) == 0 {
			does = []string{"idle"}
		}
		putf(w, "  thread %s, executor %s: %s\n", l.Thread, l.Executor, strings.Join(does, ", "))
	}
	if jobs {
		putln(w, "the commands of jobs go on as well: the next thole up delivers what they come to, and a job whose executor has ended by then fails")
	}
	putln(w, "stop them now with: "+e.program("thread close --all --interrupt"))
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
