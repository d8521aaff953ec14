package cli

import (
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tholehq/thole/internal/backup"
	"github.com/tholehq/thole/internal/doctor"
	"github.com/tholehq/thole/internal/version"
)

func newBackup(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the whole home to a new file; thole may keep running",
		Long: "Copy the whole home to a new file: store, files of threads, artifacts, shelves, mirrors, uploads and settings. thole may keep running.\n" +
			"The key of the vault and logins are never in it.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := env.inHome(); err != nil { // a home that was moved has its old store still
				return err
			}
			cfg, err := env.config(nil)
			if err != nil {
				return err
			}
			src := backup.Source{Home: cfg.Home, Version: version.Version}
			if cfg.Objects.Kind == "s3" {
				src.Elsewhere = "the bucket " + cfg.Objects.Bucket
			}
			r, err := backup.Make(cmd.Context(), src, args[0], time.Now())
			if err != nil {
				return err
			}
			return env.print(r, func(w io.Writer) {
				putf(w, "%s: %s, %s, %s\n", r.Path, count(r.Files, "file"), count(r.Bytes, "byte"), countWords(r.Counts))
				for _, note := range r.Notes {
					putln(w, note)
				}
			})
		},
	}
}

func newRestore(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a home of a backup; refuses a home that has something in it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			home, err := env.home()
			if err != nil {
				return err
			}
			if home, err = filepath.Abs(home); err != nil {
				return err
			}
			r, err := backup.Restore(cmd.Context(), args[0], home)
			if err != nil {
				return err
			}
			// On another machine the backup is there and the key of its secrets is not.
			cfg, err := env.config(nil)
			if err != nil {
				return err
			}
			if locked := doctor.CheckVault(cmd.Context(), cfg); !locked.OK {
				r.Notes = append(r.Notes, locked.Problem+"; "+locked.Fix)
			}
			return env.print(r, func(w io.Writer) {
				putf(w, "restored %s: %s, %s, %s; every hash and count is right\n", r.Home, count(r.Files, "file"), count(r.Bytes, "byte"), countWords(r.Counts))
				for _, note := range r.Notes {
					putln(w, note)
				}
			})
		},
	}
}

// countWords names the rows that people know.
func countWords(counts map[string]int64) string {
	var out []string
	for _, table := range slices.Sorted(maps.Keys(counts)) {
		if table == "threads" || table == "turns" {
			out = append(out, count(counts[table], strings.TrimSuffix(table, "s")))
		}
	}
	return strings.Join(out, ", ")
}
