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
		Short: "Print the version, and the commit and the date that it was built from",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := version.Get()
			v := struct {
				version.Build
				OS   string `json:"os"`
				Arch string `json:"arch"`
			}{b, runtime.GOOS, runtime.GOARCH}
			return env.print(v, func(w io.Writer) {
				putln(w, "thole "+b.Version)
				if b.Commit != "" {
					changed := ""
					if b.Modified {
						changed = ", with changes"
					}
					putf(w, "commit %s of %s%s\n", b.Commit, b.Date, changed)
				}
				putf(w, "%s on %s/%s\n", b.Go, v.OS, v.Arch)
			})
		},
	}
}
