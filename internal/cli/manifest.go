package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/workspace"
)

func newManifest(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "manifest", Short: "Work with an app's runtime manifest"}
	cmd.AddCommand(&cobra.Command{
		Use:   "validate FILE",
		Short: "Check a runtime manifest and show what it restores, in order",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := os.ReadFile(args[0])
			if errors.Is(err, os.ErrNotExist) {
				return thole.Errorf(thole.CodeNotFound, "there is no file %s", args[0])
			}
			if err != nil {
				return thole.Errorf(thole.CodeInvalid, "read manifest: %w", err)
			}
			m, err := workspace.ParseManifest(data)
			if err != nil {
				return err
			}
			plan, err := workspace.Compile(m, workspace.Prefixes{
				App: "app/" + m.AppID + "/", Project: "app/" + m.AppID + "/project/{project}/",
				User: "app/" + m.AppID + "/project/{project}/user/{user}/", Thread: "app/" + m.AppID + "/project/{project}/user/{user}/session/{thread}/workspace/",
			})
			if err != nil {
				return err
			}
			return env.print(plan, func(w io.Writer) {
				putf(w, "manifest of app %s, runtime version %s, is valid\n", plan.AppID, plan.RuntimeVersion)
				for i, e := range plan.Entries {
					putf(w, "%d. %-17s %s -> %s\n", i+1, e.Layer, e.FromPrefix, e.ToPath)
				}
			})
		},
	})
	cmd.AddCommand(&cobra.Command{
		Use: "template DIR", Short: "Record the modes and links of a template's directory before you store its files", Args: cobra.ExactArgs(1),
		Long: "Writes " + workspace.TemplateFiles + " into DIR: what a store of objects cannot keep of its files, that is modes, symbolic links\n" +
			"and empty directories. Store it with the other files below the manifest's workspaceTemplatePrefix, by any tool.",
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := workspace.DescribeTemplate(args[0])
			if err != nil {
				return err
			}
			file := filepath.Join(args[0], workspace.TemplateFiles)
			if err := atomicfile.Write(file, append(data, '\n'), 0o644); err != nil {
				return thole.Errorf(thole.CodeUnavailable, "write %s: %w", file, err)
			}
			return env.print(map[string]string{"file": file}, func(w io.Writer) { putln(w, "wrote", file) })
		},
	})
	return cmd
}
