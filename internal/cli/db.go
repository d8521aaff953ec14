package cli

import (
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/doctor"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/system"
)

// newDB looks after the store of a home. Backup and restore are for SQLite and work on the
// file: backup also while an owner runs, restore only without one.
func newDB(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "db", Short: "Back up, restore, check and move the store of a home"}
	cmd.AddCommand(newDBBackup(env), newDBRestore(env), newDBCheck(env), newDBMigrate(env), newDBMove(env))
	return cmd
}

func (e *Env) storePath() (string, error) {
	home, err := e.home()
	return filepath.Join(home, store.FileName), err
}

func newDBBackup(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a consistent copy of the store to a new file; thole may keep running",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := env.inHome(); err != nil {
				return err
			}
			path, err := env.storePath()
			if err != nil {
				return err
			}
			r, err := store.Backup(cmd.Context(), path, args[0])
			if err != nil {
				return err
			}
			return env.print(r, func(w io.Writer) { putf(w, "%s: %d bytes, schema %d, checked\n", r.Path, r.Bytes, r.Schema) })
		},
	}
}

func newDBRestore(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Replace the store with a backup, keeping the old one next to it; thole must be stopped",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := env.inHome(); err != nil {
				return err
			}
			path, err := env.storePath()
			if err != nil {
				return err
			}
			kept, err := store.Restore(cmd.Context(), path, args[0], time.Now())
			if err != nil {
				return err
			}
			out := map[string]string{"path": path, "kept": kept}
			// The signed head is of the store that was there; it stays the proof of what it had.
			if out["audit_head"], err = system.SetAuditHeadAside(filepath.Dir(path), time.Now()); err != nil {
				return err
			}
			// On another machine the backup is there and the key of its secrets is not.
			cfg, err := env.config(nil)
			if err != nil {
				return err
			}
			locked := doctor.CheckVault(cmd.Context(), cfg)
			if !locked.OK {
				out["vault"] = locked.Problem
			}
			return env.print(out, func(w io.Writer) {
				putln(w, "restored "+path)
				if kept != "" {
					putln(w, "the store that was there is now "+kept)
				}
				if !locked.OK {
					putln(w, locked.Problem)
					putln(w, "  try: "+locked.Fix)
				}
			})
		},
	}
}

func newDBCheck(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Read the whole store, or a backup, and report damage",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := env.storePath()
			if len(args) == 1 {
				path, err = args[0], nil
			}
			if err != nil {
				return err
			}
			var r *sqldb.Report
			cfg, err := env.config(nil)
			switch {
			case len(args) == 0 && err != nil:
			case len(args) == 0 && cfg.Store.Postgres():
				r, err = checkPostgres(cmd, cfg)
			default:
				r, err = store.Check(cmd.Context(), path)
			}
			if err != nil {
				return err
			}
			err = env.print(r, func(w io.Writer) {
				for _, p := range r.Problems {
					putln(w, p)
				}
				if len(r.Problems) == 0 {
					putf(w, "%s: %d bytes, schema %d, no damage found\n", r.Path, r.Bytes, r.Schema)
				}
			})
			if err == nil && len(r.Problems) > 0 {
				err = thole.Errorf(thole.CodeUnavailable, "%s has %s", r.Path, count(len(r.Problems), "problem")).WithHint("thole db restore FILE")
			}
			return err
		},
	}
	env.configFlag(cmd)
	return cmd
}
