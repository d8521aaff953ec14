package price_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/price"
)

var day = time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)

func TestBuiltInPrices(t *testing.T) {
	table := price.Default()
	if table.Version == "" || table.AsOf == "" || len(table.Rows) < 10 {
		t.Fatalf("%+v", table)
	}
	cost := func(model string, u thole.Usage, want int64) {
		t.Helper()
		u.Model = model
		if got, ok := table.Cost("codex", day, u); !ok || got != want {
			t.Errorf("%s costs %d (%v), want %d", model, got, ok, want)
		}
	}
	u := thole.Usage{Input: 1_000_000, CacheRead: 1_000_000, Output: 50_000, Reasoning: 50_000}
	cost("gpt-5-codex", u, 1_250_000+125_000+1_000_000)
	cost("gpt-5.4-mini-2026-03-17", u, 750_000+75_000+450_000)
	cost("claude-sonnet-4-5-20250929", thole.Usage{Input: 10, CacheWrite: 1000, CacheRead: 2000, Output: 100}, 30+3750+600+1500)
	cost("claude-haiku-4-5@20251001", thole.Usage{Input: 1}, 1)
	cost("gpt-6.1-sol", thole.Usage{Input: 200_000, CacheRead: 72_000, Output: 1000}, 400_000+7_200+10_000)
	cost("gpt-6.1-sol", thole.Usage{Input: 200_000, CacheRead: 72_001, Output: 1000}, 800_000+14_400+15_000)
	for _, model := range []string{"", "sim-1", "gpt-5-unheard-of", "gpt-52", "gpt-5.4", "claude-opus-5-9", "claude-sonnet-5-5-x"} {
		u.Model = model
		if got, ok := table.Cost("codex", day, u); ok {
			t.Errorf("%q costs %d", model, got)
		}
	}
}

const head = "version = \"1\"\nas_of = \"2026-01\"\n"

func row(lines string) string {
	return "[[price]]\n" + lines + "\nin = 1\nout = 2\ncache_read = 0.1\ncache_write = 4\n"
}

func parse(t *testing.T, text string) *price.Table {
	t.Helper()
	table, err := price.Parse("test", head+text)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestWhichRowHolds(t *testing.T) {
	table := parse(t, `
[[price]]
model = "*"
in = 1
out = 1
cache_read = 1
cache_write = 1
[[price]]
model = "big-*"
in = 2
out = 2
cache_read = 2
cache_write = 2
[[price]]
model = "big-one"
in = 3
out = 3
cache_read = 3
cache_write = 3
[[price]]
model = "big-one"
from = "2026-12-01"
in = 4
out = 4
cache_read = 4
cache_write = 4
[[price]]
model = "big-one"
prompt_over = 100
in = 5
out = 5
cache_read = 5
cache_write = 5
[[price]]
provider = "codex"
model = "*"
in = 6
out = 6
cache_read = 6
cache_write = 6
`)
	for _, c := range []struct {
		provider, model string
		at              time.Time
		input, want     int64
	}{
		{"claude", "small", day, 10, 10},
		{"claude", "big-two", day, 10, 20},
		{"claude", "big-one", day, 10, 30},
		{"claude", "big-one-20260101", day, 10, 30},
		{"claude", "big-one", day, 100, 300},
		{"claude", "big-one", day, 101, 505},
		{"claude", "big-one", day.AddDate(0, 1, 0), 10, 40},
		{"codex", "big-one", day, 10, 60},
	} {
		if got, ok := table.Cost(c.provider, c.at, thole.Usage{Model: c.model, Input: c.input}); !ok || got != c.want {
			t.Errorf("%+v: %d, %v", c, got, ok)
		}
	}
	// The most that 101 tokens can cost is what they cost as one long prompt.
	if most, ok := table.Most("claude", "big-one", day, 101, 10); !ok || most != 555 {
		t.Errorf("most %d, %v", most, ok)
	}
}

// The most of a call is never less than its cost, however its tokens are split.
func TestMostIsABound(t *testing.T) {
	table := parse(t, row(`model = "m"`)+"[[price]]\nmodel = \"m\"\nprompt_over = 50\nin = 0.5\nout = 9\ncache_read = 0.1\ncache_write = 0.2\n")
	for input := int64(0); input <= 120; input += 7 {
		most, _ := table.Most("p", "m", day, input, 40)
		for _, u := range []thole.Usage{{Input: input, Output: 40}, {CacheWrite: input, Reasoning: 40}, {CacheRead: input, Output: 20, Reasoning: 20}, {Input: input / 2, CacheWrite: input / 2, Output: 40}} {
			u.Model = "m"
			if cost, _ := table.Cost("p", day, u); cost > most {
				t.Errorf("%+v costs %d, most %d", u, cost, most)
			}
		}
	}
	if most, ok := table.Most("p", "m", day, 1<<62, 1<<62); !ok || most <= 0 {
		t.Errorf("most of an absurd call: %d, %v", most, ok)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no version":      `as_of = "2026-01"`,
		"no month":        `version = "1"`,
		"bad month":       "version = \"1\"\nas_of = \"2026-13\"",
		"unknown key":     head + "currency = \"eur\"",
		"not toml":        head + "[[price",
		"unknown column":  head + row("model = \"m\"\ncolour = 1"),
		"no model":        head + row(""),
		"no output price": head + "[[price]]\nmodel = \"m\"\nin = 1\ncache_read = 1\ncache_write = 1",
		"negative":        head + strings.Replace(row(`model = "m"`), "in = 1", "in = -1", 1),
		"not a number":    head + strings.Replace(row(`model = "m"`), "in = 1", "in = nan", 1),
		"text":            head + strings.Replace(row(`model = "m"`), "in = 1", `in = "1"`, 1),
		"bad day":         head + row("model = \"m\"\nfrom = \"2026-1-1\""),
		"bad length":      head + row("model = \"m\"\nprompt_over = -5"),
		"twice":           head + row(`model = "m"`) + row(`model = "m"`),
	} {
		if _, err := price.Parse("test", text); thole.CodeOf(err) != thole.CodeInvalid || thole.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFileIsFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.toml")
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	if _, err := price.Open(path, true, log); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("a file that must be there: %v", err)
	}
	f, err := price.Open(path, false, log)
	if err != nil || f.Table() != price.Default() {
		t.Fatal(err)
	}
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	put(head + row(`model = "m"`))
	if got := f.Table(); got.Version != "1" || len(got.Rows) != 1 {
		t.Fatalf("%+v", got)
	}
	put(head + "nonsense")
	for range 3 {
		if got := f.Table(); got.Version != "1" || len(got.Rows) != 1 {
			t.Fatalf("a wrong file replaced the table: %+v", got)
		}
	}
	if n := strings.Count(said.String(), "kept as it was"); n != 1 {
		t.Errorf("reported %d times:\n%s", n, said.String())
	}
	if _, err := price.Open(path, false, log); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("a wrong file at the start: %v", err)
	}
	put(strings.Replace(head, `"1"`, `"2"`, 1))
	if got := f.Table().Version; got != "2" {
		t.Errorf("version %s", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if f.Table() != price.Default() {
		t.Error("a removed file still holds")
	}
}
