package cli

import (
	"io"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/version"
)

func newVersion(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": version.Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
			return env.print(v, func(w io.Writer) { putln(w, "thole "+version.Version) })
		},
	}
}
