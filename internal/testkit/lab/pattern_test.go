package lab_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// Copies of the pattern have what it was filled with, once, and nothing of one another.
func TestPostgresLike(t *testing.T) {
	fills := 0
	fill := func(dsn string) error {
		fills++
		return query(t, dsn, "create table word (said text)")
	}
	a, b := lab.PostgresLike(t, fill), lab.PostgresLike(t, fill)
	if err := query(t, a, "insert into word values ('a')"); err != nil {
		t.Fatal(err)
	}
	if err := query(t, b, "select 1/(1-count(*)) from word"); err != nil { // fails with one row
		t.Error(err)
	}
	if fills != 1 {
		t.Errorf("filled %d times", fills)
	}
}

func query(t *testing.T, dsn, statement string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), statement)
	return err
}
