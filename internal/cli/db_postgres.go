package cli

import (
	"io"
	"strconv"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/system"
)

func newDBMigrate(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema of the store up to this version; thole does the same when it starts",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg, err := env.config(nil)
			if err != nil {
				return err
			}
			at, err := system.StoreConfig(cfg)
			if err != nil {
				return err
			}
			if !cfg.Store.Postgres() {
				owner, err := daemon.Own(cmd.Context(), cfg.Home, 0)
				if err != nil {
					return err
				}
				defer func() { _ = owner.Release() }()
			}
			applied := []string{}
			at.Schema.Applied = func(m sqldb.Migration) { applied = append(applied, strconv.FormatInt(m.Version, 10)+" "+m.Name) }
			db, err := store.Open(cmd.Context(), at)
			if err != nil {
				return err
			}
			if err := db.Close(); err != nil {
				return err
			}
			return env.print(map[string][]string{"applied": applied}, func(w io.Writer) {
				for _, m := range applied {
					putln(w, "applied "+m)
				}
				if len(applied) == 0 {
					putln(w, "the schema is up to date")
				}
			})
		},
	}
	env.configFlag(cmd)
	return cmd
}

func newDBMove(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Copy everything of a home's SQLite store to the PostgreSQL store and objects of a configuration; thole must be stopped",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := env.config(nil)
			if err != nil {
				return err
			}
			moved, err := system.MoveStore(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return env.print(moved, func(w io.Writer) {
				for _, t := range moved.Tables {
					if t.Rows > 0 {
						putf(w, "%-28s %8d rows  %s\n", t.Name, t.Rows, t.Sum[:16])
					}
				}
				putf(w, "moved %s of %s and %s (%s), and compared each\n", count(moved.Rows, "row"), count(len(moved.Tables), "table"), count(moved.Objects, "object"), count(moved.Bytes, "byte"))
				putln(w, "the SQLite store stays as it was; go on with: thole serve")
			})
		},
	}
	env.configFlag(cmd)
	return cmd
}

// checkPostgres is db check of a store that is not in the home.
func checkPostgres(cmd *cobra.Command, cfg *config.Config) (*sqldb.Report, error) {
	dsn, err := cfg.Store.DSN()
	if err != nil {
		return nil, err
	}
	r, err := store.CheckPostgres(cmd.Context(), dsn)
	if r != nil {
		r.Path = cfg.Store.URL
	}
	return r, err
}

// inHome refuses what works on the file of a SQLite store alone.
func (e *Env) inHome() error {
	cfg, err := e.config(nil)
	if err == nil && cfg.Store.Postgres() {
		err = thole.Errorf(thole.CodeUnsupported, "the store of this home is PostgreSQL").WithHint("back it up and restore it with pg_dump and pg_restore")
	}
	return err
}
