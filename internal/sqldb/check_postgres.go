package sqldb

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	thole "github.com/tholehq/thole"
)

// CheckPostgres looks at a PostgreSQL store and changes nothing: whether it can be reached,
// is new enough and has a schema that this binary knows. Path is left empty: a connection
// string may hold a password.
func (s Schema) CheckPostgres(ctx context.Context, dsn string) (*Report, error) {
	pc, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, badDSN()
	}
	if pc.ConnectTimeout == 0 {
		pc.ConnectTimeout = connectTimeout
	}
	pool := stdlib.OpenDB(*pc)
	defer pool.Close()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, classify(err)
	}
	defer conn.Close()
	r := &Report{Problems: []string{}}
	var tables int
	if err := errors.Join(usableServer(ctx, conn),
		conn.QueryRowContext(ctx, "select pg_database_size(current_database())").Scan(&r.Bytes),
		conn.QueryRowContext(ctx, postgresDialect{}.tableExists()).Scan(&tables)); err != nil {
		return nil, classify(err)
	}
	if tables == 0 {
		r.Problems = append(r.Problems, "the database is empty: thole serve or thole db migrate makes its tables")
		return r, nil
	}
	applied, err := appliedMigrations(ctx, conn, postgresDialect{})
	if err != nil {
		return nil, classify(err)
	}
	for version := range applied {
		r.Schema = max(r.Schema, version)
	}
	all, err := s.Migrations()
	if err != nil {
		return nil, err
	}
	return r, s.compatible(all, applied)
}

func badDSN() error {
	return thole.Errorf(thole.CodeInvalid, "open store: the PostgreSQL DSN cannot be parsed").
		WithHint("a DSN looks like postgres://user@host:5432/database")
}

// ServerOf is the HOST:PORT that a DSN leads to, "" for a socket of this machine.
func ServerOf(dsn string) (string, error) {
	pc, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", badDSN()
	}
	if filepath.IsAbs(pc.Host) {
		return "", nil
	}
	return net.JoinHostPort(pc.Host, strconv.Itoa(int(pc.Port))), nil
}
