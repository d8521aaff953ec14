package store

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/strictjson"
)

// column ties a column to a field of a row.
type column struct {
	name string
	ptr  any // scan destination; its value is the argument
}

// table holds the statements of a row type, built once from its columns. The
// first column is the key, the last is the version that updates compare and raise.
type table struct {
	name           string
	selected       string
	insert, update string
	moving         []int // the columns that an update writes, between key and version
}

// newTable names the columns that never change: an update leaves them out, and so
// the indexes on them alone.
func newTable(name string, cols []column, fixed ...string) *table {
	t := &table{name: name}
	names, sets := make([]string, len(cols)), []string{}
	last := len(cols) - 1
	for i, c := range cols {
		names[i] = c.name
		if i > 0 && i < last && !slices.Contains(fixed, c.name) {
			t.moving = append(t.moving, i)
			sets = append(sets, fmt.Sprintf("%s = $%d", c.name, len(t.moving)+2))
		}
	}
	list := strings.Join(names, ", ")
	t.selected = "select " + list + " from " + name + " "
	t.insert = "insert into " + name + " (" + list + ") values (" + marks(1, len(cols)) + ")"
	version := names[last]
	sets = append(sets, version+" = "+version+" + 1")
	t.update = fmt.Sprintf("update %s set %s where %s = $1 and %s = $2", name, strings.Join(sets, ", "), names[0], version)
	return t
}

func arguments(cols []column) []any {
	args := make([]any, len(cols))
	for i, c := range cols {
		args[i] = argument(c.ptr)
	}
	return args
}

func argument(ptr any) any {
	if v, ok := ptr.(driver.Valuer); ok {
		return v
	}
	v := reflect.ValueOf(ptr).Elem()
	if v.Kind() == reflect.String {
		return v.String()
	}
	return v.Interface()
}

func destinations(cols []column) []any {
	dest := make([]any, len(cols))
	for i, c := range cols {
		dest[i] = c.ptr
	}
	return dest
}

// one reads the row a query names, nil if there is none.
func one[T any](tx *sqldb.Tx, cols func(*T) []column, query string, args ...any) (*T, error) {
	row := new(T)
	err := tx.QueryRow(query, args...).Scan(destinations(cols(row))...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return row, nil
}

func many[T any](tx *sqldb.Tx, cols func(*T) []column, query string, args ...any) ([]T, error) {
	return sqldb.All(tx, func(rows *sql.Rows) (T, error) {
		var row T
		err := rows.Scan(destinations(cols(&row))...)
		return row, err
	}, query, args...)
}

// put writes back a row that was read in this transaction.
func put(tx *sqldb.Tx, t *table, cols []column, version *int64) error {
	args := make([]any, 0, len(t.moving)+2)
	args = append(args, argument(cols[0].ptr), *version)
	for _, i := range t.moving {
		args = append(args, argument(cols[i].ptr))
	}
	if err := tx.Must(t.name+" row is unchanged", t.update, args...); err != nil {
		return err
	}
	*version++
	return nil
}

// command stores what a job runs as JSON, and none as "".
type command = document[delivery.Command]

// pluginTarget is the same of what a plugin's result is delivered by.
type pluginTarget = document[thole.PluginTarget]

type document[T any] struct{ v **T }

func (d document[T]) Value() (driver.Value, error) {
	if *d.v == nil {
		return "", nil
	}
	body, err := json.Marshal(*d.v)
	return string(body), err
}

func (d document[T]) Scan(src any) error {
	*d.v = nil
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("scan document: got %T", src)
	}
	if text == "" {
		return nil
	}
	*d.v = new(T)
	return strictjson.Unmarshal([]byte(text), *d.v)
}

// millis stores a time as Unix milliseconds, and the zero time as 0.
type millis struct{ t *time.Time }

func (m millis) Value() (driver.Value, error) { return toMillis(*m.t), nil }

func (m millis) Scan(src any) error {
	ms, ok := src.(int64)
	if !ok {
		return fmt.Errorf("scan time: got %T", src)
	}
	*m.t = thole.FromMillis(ms)
	return nil
}

func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return thole.Millis(t)
}
