package sqldb

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
)

// Table is what a table holds: how many rows, and a sum over all of them that does not
// depend on their order.
type Table struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
	Sum  string `json:"sum"`
}

// CopyAll copies every row of a SQLite store into another store of the same schema, in
// one transaction that then runs also. The copy is read back, and nothing is committed
// unless both have the same rows. A store that holds more than a new one is refused.
func CopyAll(ctx context.Context, from, to *DB, also func(tx *Tx, copied []Table) error) (copied []Table, err error) {
	if from.Engine() != SQLite {
		return nil, thole.Errorf(thole.CodeInternal, "copy from %s", from.Engine())
	}
	fresh, err := freshRows(ctx, to.cfg.Schema)
	if err != nil {
		return nil, err
	}
	err = from.View(ctx, func(src *Tx) error {
		order, err := copyOrder(src)
		if err != nil {
			return err
		}
		return to.Update(ctx, "store.move", func(dst *Tx) error {
			if err := isFresh(dst, order, fresh); err != nil {
				return err
			}
			copied = nil
			for _, name := range slices.Backward(order) { // what migrations put there comes from the source too
				if _, err := dst.Exec("delete from " + quoted(name)); err != nil {
					return err
				}
			}
			for _, name := range order {
				t, err := copyTable(src, dst, name)
				if err != nil {
					return fmt.Errorf("table %s: %w", name, err)
				}
				copied = append(copied, t)
			}
			return also(dst, copied)
		})
	})
	return copied, err
}

// Sums reads every table of a SQLite store as CopyAll does.
func Sums(ctx context.Context, db *DB) (all []Table, err error) {
	err = db.View(ctx, func(tx *Tx) error {
		order, err := copyOrder(tx)
		if err != nil {
			return err
		}
		for _, name := range order {
			columns, err := sqliteColumns(tx, name)
			if err != nil {
				return err
			}
			t, err := sumTable(tx, name, columns)
			if err != nil {
				return fmt.Errorf("table %s: %w", name, err)
			}
			all = append(all, t)
		}
		return nil
	})
	return all, err
}

// column is one column with its kind: text, bigint or boolean.
type column struct{ name, kind string }

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// freshRows counts what migrations alone put into each table.
func freshRows(ctx context.Context, schema Schema) (map[string]int64, error) {
	dir, err := os.MkdirTemp("", "thole-schema-")
	if err != nil {
		return nil, fileError("make", os.TempDir(), err)
	}
	defer os.RemoveAll(dir)
	schema.Applied = nil
	db, err := Open(ctx, Config{Path: filepath.Join(dir, "db"), Schema: schema})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	tables, err := Sums(ctx, db)
	rows := map[string]int64{}
	for _, t := range tables {
		rows[t.Name] = t.Rows
	}
	return rows, err
}

func isFresh(dst *Tx, order []string, fresh map[string]int64) error {
	for _, name := range order {
		var n int64
		if err := dst.QueryRow("select count(*) from " + quoted(name)).Scan(&n); err != nil {
			return err
		}
		if n != fresh[name] {
			return thole.Errorf(thole.CodeConflict, "the database is not empty: table %s has %d rows", name, n).WithHint("name an empty database in store.url: create database NAME")
		}
	}
	return nil
}

func names(tx *Tx, query string, args ...any) ([]string, error) {
	return All(tx, func(rows *sql.Rows) (s string, err error) { err = rows.Scan(&s); return s, err }, query, args...)
}

// copyOrder lists the tables of a SQLite store, each after those that it refers to.
func copyOrder(src *Tx) (order []string, err error) {
	all, err := names(src, `select name from sqlite_master where type = 'table' and name not like 'sqlite\_%' escape '\' and name <> 'schema_migrations' order by name`)
	if err != nil {
		return nil, err
	}
	var visit func(name string, above []string) error
	visit = func(name string, above []string) error {
		if slices.Contains(order, name) {
			return nil
		}
		if slices.Contains(above, name) {
			return thole.Errorf(thole.CodeInternal, "tables refer to one another: %v", above)
		}
		parents, err := names(src, `select distinct "table" from pragma_foreign_key_list($1)`, name)
		if err != nil {
			return err
		}
		for _, parent := range parents {
			if parent != name {
				if err := visit(parent, append(above[:len(above):len(above)], name)); err != nil {
					return err
				}
			}
		}
		order = append(order, name)
		return nil
	}
	for _, name := range all {
		if err := visit(name, nil); err != nil {
			return nil, err
		}
	}
	return order, nil
}

func scanColumn(rows *sql.Rows) (c column, err error) {
	err = rows.Scan(&c.name, &c.kind)
	c.kind = strings.ToLower(c.kind)
	return c, err
}

func sqliteColumns(tx *Tx, table string) ([]column, error) {
	return All(tx, scanColumn, `select name, type from pragma_table_info($1) order by name`, table)
}

func columnsOf(tx *Tx, table string) ([]column, error) {
	if _, shared := tx.q.(pgQuerier); !shared {
		return sqliteColumns(tx, table)
	}
	return All(tx, scanColumn, `select column_name, data_type from information_schema.columns
		where table_schema = current_schema() and table_name = $1 order by column_name collate "C"`, table)
}

// maxParams is how many values one statement takes on either engine.
const maxParams = 32766

func copyTable(src, dst *Tx, name string) (t Table, err error) {
	columns, err := sqliteColumns(src, name)
	if err != nil {
		return t, err
	}
	there, err := columnsOf(dst, name)
	if err != nil {
		return t, err
	}
	if !slices.Equal(columns, there) {
		return t, thole.Errorf(thole.CodeInternal, "columns differ: %v and %v", columns, there)
	}
	chunk, args := max(1, min(500, maxParams/len(columns))), []any{}
	flush := func() error {
		if len(args) == 0 {
			return nil
		}
		_, err := dst.Exec(insertText(name, columns, len(args)/len(columns)), args...)
		args = args[:0]
		return err
	}
	t, err = eachRow(src, name, columns, func(row []any) error {
		if args = append(args, row...); len(args) == chunk*len(columns) {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return t, err
	}
	back, err := sumTable(dst, name, columns)
	if err == nil && back != t {
		err = thole.Errorf(thole.CodeInternal, "the copy differs: %d rows with sum %s, not %d with %s", back.Rows, back.Sum, t.Rows, t.Sum)
	}
	return t, err
}

func insertText(name string, columns []column, rows int) string {
	var b strings.Builder
	b.WriteString("insert into " + quoted(name) + " (" + columnList(columns) + ") values ")
	for r, n := 0, 1; r < rows; r++ {
		b.WriteString([]string{"(", ", ("}[min(r, 1)])
		for c := range columns {
			if c > 0 {
				b.WriteByte(',')
			}
			b.WriteString("$" + strconv.Itoa(n))
			n++
		}
		b.WriteByte(')')
	}
	return b.String()
}

func columnList(columns []column) string {
	quotedNames := make([]string, len(columns))
	for i, c := range columns {
		quotedNames[i] = quoted(c.name)
	}
	return strings.Join(quotedNames, ", ")
}

func sumTable(tx *Tx, name string, columns []column) (Table, error) {
	return eachRow(tx, name, columns, func([]any) error { return nil })
}

// eachRow reads a table and sums it up. Row sums are added: their order does not matter, and
// rows that are equal do not cancel each other out.
func eachRow(tx *Tx, name string, columns []column, do func(row []any) error) (Table, error) {
	t := Table{Name: name}
	var sum [4]uint64
	rows, err := tx.Query("select " + columnList(columns) + " from " + quoted(name))
	if err != nil {
		return t, err
	}
	defer rows.Close()
	row, dest := make([]any, len(columns)), make([]any, len(columns))
	for i := range row {
		dest[i] = &row[i]
	}
	var text []byte
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return t, err
		}
		text = text[:0]
		for i, c := range columns {
			if row[i], err = c.value(row[i]); err != nil {
				return t, err
			}
			text = appendValue(text, row[i])
		}
		one, carry := sha256.Sum256(text), uint64(0)
		for i := range sum {
			sum[i], carry = bits.Add64(sum[i], binary.LittleEndian.Uint64(one[8*i:]), carry)
		}
		t.Rows++
		if err := do(row); err != nil {
			return t, err
		}
	}
	var end []byte
	for _, word := range sum {
		end = binary.LittleEndian.AppendUint64(end, word)
	}
	t.Sum = hex.EncodeToString(end)
	return t, rows.Err()
}

// value is a value of the column as both engines mean it.
func (c column) value(v any) (any, error) {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	switch x := v.(type) {
	case nil:
		return nil, nil
	case string:
		if c.kind == "text" {
			if strings.ContainsRune(x, 0) {
				return nil, thole.Errorf(thole.CodeInvalid, "column %s has a text with a zero byte, which PostgreSQL does not take", c.name)
			}
			return x, nil
		}
	case int64:
		switch c.kind {
		case "bigint":
			return x, nil
		case "boolean":
			return x != 0, nil
		}
	case bool:
		if c.kind == "boolean" {
			return x, nil
		}
	}
	return nil, thole.Errorf(thole.CodeInternal, "column %s is %s and holds a %T", c.name, c.kind, v)
}

func appendValue(to []byte, v any) []byte {
	switch x := v.(type) {
	case string:
		return append(binary.LittleEndian.AppendUint64(append(to, 't'), uint64(len(x))), x...)
	case int64:
		return binary.LittleEndian.AppendUint64(append(to, 'i'), uint64(x))
	case bool:
		if x {
			return append(to, 'b', 1)
		}
		return append(to, 'b', 0)
	}
	return append(to, 'n')
}
