package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/system"
)

func newWorkspace(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "workspace", Short: "Work with threads' files"}
	cmd.AddCommand(&cobra.Command{
		Use:   "export THREAD DIR",
		Short: "Write the files that a thread's last sync stored into a new directory",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[1])
			if err != nil {
				return thole.Errorf(thole.CodeInvalid, "export: %w", err)
			}
			var got system.ExportResult
			if err := env.ask(cmd.Context(), system.MethodExport, system.ExportParams{Thread: thole.ThreadID(args[0]), Dir: dir}, &got); err != nil {
				return err
			}
			return env.print(got, func(w io.Writer) {
				fmt.Fprintf(w, "%d files, %d bytes, as synced %s, are in %s\n", got.Files, got.Bytes, got.Synced.Local().Format(time.DateTime), got.Dir)
				for _, path := range got.Skipped {
					fmt.Fprintf(w, "left out: %q\n", path)
				}
			})
		},
	})
	return cmd
}
