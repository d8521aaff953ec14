// Package parts records which real parts the tests ran on: a database server, a
// container engine, an agent CLI. Tests record through Use; a run that sets
// THOLE_PARTS collects the records of all its test binaries in that file and
// prints them with the report command, so that a run that quietly used nothing
// real is seen. The package starts and finds nothing itself; that is lab's work.
package parts

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// Use records that a test runs on a part. Records of several processes go to one
// file: each is one short write in append mode, which the kernel keeps whole.
func Use(t interface {
	Name() string
	Helper()
	Errorf(string, ...any)
}, part, version string) {
	t.Helper()
	path := os.Getenv("THOLE_PARTS")
	if path == "" {
		return
	}
	binary := strings.TrimSuffix(filepath.Base(os.Args[0]), ".test")
	if err := appendUse(path, Record{Part: part, Version: version, Test: binary + "." + t.Name()}); err != nil {
		t.Errorf("record the use of %s: %v", part, err)
	}
}

// Record is one use of a part by one test.
type Record struct {
	Part    string `json:"part"`
	Version string `json:"version"`
	Test    string `json:"test"`
}

func appendUse(path string, r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// Row is one line of the table: a part at a version and the tests that ran on it.
type Row struct {
	Part, Version string
	Tests         int
}

// Rows folds a file of records into one row for each part and version. A wanted
// part that no test used gets a row with no tests. A missing file is no use at all.
func Rows(path string, want []string) ([]Row, error) {
	type key struct{ part, version string }
	tests := map[key]map[string]bool{}
	used := map[string]bool{}
	f, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		defer func() { _ = f.Close() }()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var r Record
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			k := key{r.Part, r.Version}
			if tests[k] == nil {
				tests[k] = map[string]bool{}
			}
			tests[k][r.Test] = true
			used[r.Part] = true
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	var rows []Row
	for k, names := range tests {
		rows = append(rows, Row{k.part, k.version, len(names)})
	}
	for _, part := range want {
		if !used[part] {
			rows = append(rows, Row{Part: part, Version: "-"})
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(a.Version, b.Version))
	})
	return rows, nil
}

// Print writes the table and returns the parts without tests.
func Print(w io.Writer, rows []Row) (empty []string, err error) {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(tw, "REAL PART\tVERSION\tTESTS")
	for _, r := range rows {
		_, _ = fmt.Fprintf(tw, "%s\t%s\t%d\n", r.Part, r.Version, r.Tests)
		if r.Tests == 0 {
			empty = append(empty, r.Part)
		}
	}
	return empty, tw.Flush()
}
