package cli

import (
	"cmp"
	"net"
	"os"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/egress"
)

// newInBox has what programs inside a box run. People have no use for it.
func newInBox(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "box", Short: "Serve programs inside a box", Hidden: true}
	cmd.AddCommand(&cobra.Command{
		Use: "connect HOST PORT", Short: "Carry standard input and output to a host through $HTTPS_PROXY", Args: cobra.ExactArgs(2),
		Long: "For ssh, which knows no proxy variables: ProxyCommand thole box connect %h %p",
		RunE: func(cmd *cobra.Command, args []string) error {
			proxy := cmp.Or(os.Getenv("HTTPS_PROXY"), os.Getenv("https_proxy"))
			if proxy == "" {
				return thole.Errorf(thole.CodeInvalid, "HTTPS_PROXY is not set")
			}
			if err := egress.Tunnel(cmd.Context(), proxy, net.JoinHostPort(args[0], args[1]), env.In, env.rawOut); err != nil { // a protocol: every byte as it is
				return thole.Errorf(thole.CodeUnavailable, "%w", err)
			}
			return nil
		},
	})
	return cmd
}
