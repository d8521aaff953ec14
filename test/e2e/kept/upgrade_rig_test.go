package kept

import (
	"archive/tar"
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/testkit/lab"
	"github.com/tholehq/thole/test/e2e/home"
)

// made is when the home of v0.1.0 was left.
var made = time.Date(2026, 11, 18, 0, 59, 36, 0, time.UTC)

// upgrade is a home that v0.1.0 left, under today's program.
type upgrade struct {
	testing.TB
	*home.Home
}

// newUpgrade unpacks the home as if v0.1.0 had been stopped a minute ago: what it
// holds would otherwise be overdue, and rightly be closed or removed.
func newUpgrade(t *testing.T) *upgrade {
	t.Helper()
	lab.Bwrap(t)
	u := &upgrade{t, home.New(t)}
	u.Vars = []string{config.Variable("providers.codex") + "=" + lab.Codex(t), config.Variable("providers.claude") + "=" + lab.Claude(t), config.Variable("providers.opencode") + "=" + lab.Opencode(t)}
	f, err := os.Open(filepath.Join("testdata", "v0.1.0.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	extract(t, tar.NewReader(z), u.Dir)
	u.shift(time.Since(made) - time.Minute)
	return u
}

// shift moves every time in the store, which has them in milliseconds.
func (u *upgrade) shift(by time.Duration) {
	u.Helper()
	if by < 0 {
		by = 0
	}
	db, err := sql.Open("sqlite", filepath.Join(u.Dir, "thole.db"))
	if err != nil {
		u.Fatal(err)
	}
	defer db.Close()
	columns, err := db.Query(`select t.name, c.name from sqlite_master t, pragma_table_info(t.name) c where t.type = 'table' and lower(c.type) like '%int%'`)
	if err != nil {
		u.Fatal(err)
	}
	defer columns.Close()
	var updates []string
	for columns.Next() {
		var table, column string
		if err := columns.Scan(&table, &column); err != nil {
			u.Fatal(err)
		}
		updates = append(updates, fmt.Sprintf(`update %q set %q = %q + ? where %q between ? and ?`, table, column, column, column))
	}
	if err := columns.Err(); err != nil || len(updates) < 50 {
		u.Fatalf("%d columns: %v", len(updates), err)
	}
	for _, q := range updates {
		if _, err := db.Exec(q, by.Milliseconds(), made.AddDate(0, -1, 0).UnixMilli(), made.AddDate(0, 1, 0).UnixMilli()); err != nil {
			u.Fatalf("%s: %v", q, err)
		}
	}
}

// migrations counts those that the store has.
func (u *upgrade) migrations() (n int) {
	u.Helper()
	db, err := sql.Open("sqlite", filepath.Join(u.Dir, "thole.db"))
	if err != nil {
		u.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("select count(*) from schema_migrations").Scan(&n); err != nil {
		u.Fatal(err)
	}
	return n
}

// said reads what v0.1.0 said.
func (u *upgrade) said(name string, into any) {
	u.Helper()
	body, err := os.ReadFile(filepath.Join(u.Dir, "said", name+".json"))
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		u.Fatal(err)
	}
}

// json runs a command that prints JSON.
func (u *upgrade) json(into any, args ...string) {
	u.Helper()
	out := u.thole(append([]string{"--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		u.Fatalf("thole %v: %v: %s", args, err, out)
	}
}

func (u *upgrade) thole(args ...string) string {
	u.Helper()
	out, words, code := u.Run(args...)
	if code != 0 {
		u.Fatalf("thole %v: exit %d: %s%s", args, code, out, words)
	}
	return out
}

// shown is what `thole thread show --json` prints of turns, in both versions.
type shown struct {
	Turns []struct {
		ID, Status string
		Items      []map[string]any
	}
}

// items are the turns that ended, as lines of what a reader sees. The command of an
// item is now the line that the shell was given, and its program; members had the names
// of the contract, and have those of the command line.
func (s shown) items() []string {
	var out []string
	for _, turn := range s.Turns {
		if turn.Status != "completed" && turn.Status != "interrupted" && turn.Status != "failed" {
			continue
		}
		out = append(out, turn.ID+" "+turn.Status)
		for _, item := range turn.Items {
			line := []string{fmt.Sprint(item["id"]), fmt.Sprint(item["type"])}
			for _, member := range []string{"text", "content", "summary", "status", "tool", "arguments", "aggregatedOutput", "aggregated_output", "exitCode", "exit_code"} {
				if value, has := item[member]; has {
					line = append(line, string(flat(value)))
				}
			}
			out = append(out, strings.Join(line, " "))
		}
	}
	return out
}

func flat(value any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(value)
	return bytes.TrimSpace(out.Bytes())
}
