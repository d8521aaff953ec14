package cli

import (
	"errors"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/platform/preview"
	"github.com/tholehq/thole/internal/system"
)

func newThreadPort(env *Env) *cobra.Command {
	var p system.PortParams
	var browser bool
	cmd := &cobra.Command{
		Use: "port THREAD [PORT]", Short: "Show a web server of a thread's agent in your browser", Args: cobra.RangeArgs(1, 2),
		Long: "Opens a port on which a program of the agent listens, and prints an address that lets one browser in, once and within\n" +
			"ten minutes. The server is shown under a name of its own (ID.localhost), without cookies of thole's. It stays open\n" +
			"until it is closed, its executor stops or thole ends, 12 hours at most. Without PORT those that are open are listed.",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if !thole.ValidUUID(args[0]) {
				return thole.Errorf(thole.CodeInvalid, "invalid thread id %q", args[0]).WithHint("thole thread list shows them")
			}
			p.Thread = thole.ThreadID(args[0])
			if len(args) == 2 {
				if p.Port, err = preview.ParsePort(args[1]); err != nil {
					return err
				}
			} else if p.Close || browser {
				return thole.Errorf(thole.CodeInvalid, "name the port").WithHint("thole thread port %s lists those that are open", p.Thread)
			}
			home, err := env.home()
			if err != nil {
				return err
			}
			var r system.PortResult
			err = (&daemonclient.Client{Home: home, NoStart: true, Wait: true}).Call(cmd.Context(), system.MethodPort, p, &r)
			if errors.Is(err, daemonclient.ErrNobody) {
				err = thole.Errorf(thole.CodeUnavailable, "no web page is served from %s, and ports are shown next to it", home).WithHint("start it with: thole up")
			}
			if err != nil || p.Close {
				return err
			}
			if browser {
				openBrowser(filepath.Join(home, "port.html"), r.Ports[0].URL)
			}
			return env.print(r, func(w io.Writer) { printPorts(w, r.Ports) })
		},
	}
	cmd.Flags().BoolVar(&p.Close, "close", false, "close the port; connections through it end")
	cmd.Flags().BoolVar(&browser, "open", false, "open the address in the browser too")
	exclude(cmd, "close", "open")
	return cmd
}

func printPorts(w io.Writer, list []preview.Port) {
	if len(list) == 1 && list[0].URL != "" {
		one := list[0]
		putln(w, one.URL)
		putf(w, "The address works once, within ten minutes. Port %d is shown until %s at the latest, while its executor and thole run.\n", one.Port, one.ExpiresAt.Local().Format(time.DateTime))
		putf(w, "To close it: thole thread port %s %d --close\n", one.Thread, one.Port)
		return
	}
	t := newTable(w)
	putf(t, "PORT\tORIGIN\tOPENED\tUNTIL\n")
	for _, one := range list {
		putf(t, "%d\t%s\t%s\t%s\n", one.Port, one.Origin, one.OpenedAt.Local().Format(time.DateTime), one.ExpiresAt.Local().Format(time.DateTime))
	}
	_ = t.Flush()
}
