package store_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/roster"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// later opens the store as a later version would, with one more migration.
func later(t *testing.T, dsn, name, body string) {
	t.Helper()
	schema, files := store.Schema(), fstest.MapFS{"migrations/" + name: {Data: []byte(body)}}
	names, err := fs.Glob(schema.Files, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		data, err := fs.ReadFile(schema.Files, n)
		if err != nil {
			t.Fatal(err)
		}
		files[n] = &fstest.MapFile{Data: data}
	}
	schema.Files = files
	db, err := sqldb.Open(t.Context(), sqldb.Config{DSN: dsn, Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestServersAreReplacedOneByOne: while a later version has added to the schema, a server of this
// one goes on and can be started again; after a change of another kind it cannot.
func TestServersAreReplacedOneByOne(t *testing.T) {
	dsn := lab.Postgres(t)
	open := func() (*store.DB, error) { return store.Open(t.Context(), sqldb.Config{DSN: dsn}) }
	db, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	works := func(db *store.DB, run string) {
		t.Helper()
		if err := db.Servers().Join(t.Context(), aServer("a", "here", run)); err != nil {
			t.Fatal(err)
		}
		if err := db.Servers().Beat(t.Context(), "a", run); err != nil {
			t.Fatal(err)
		}
	}
	works(db, "1")
	later(t, dsn, "9000_more.sql", "-- adds only\nalter table servers add column more text not null default '';\n")
	works(db, "2")
	again, err := open()
	if err != nil {
		t.Fatalf("it cannot be started again next to the later version: %v", err)
	}
	works(again, "3")
	if err := again.Servers().Join(t.Context(), func() roster.Server { s := aServer("b", "there", "1"); s.Protocol++; return s }()); err != nil {
		t.Errorf("the later version was refused: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	later(t, dsn, "9001_other.sql", "alter table servers drop column more;\n")
	if _, err := open(); thole.CodeOf(err) != thole.CodeUnsupported || !strings.Contains(err.Error(), "newer than this binary") {
		t.Errorf("a schema that was changed in another way: %v", err)
	}
}
