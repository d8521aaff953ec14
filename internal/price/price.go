// Package price knows what tokens cost: a table of list prices, versioned and dated,
// that comes with the program and that a file replaces as a whole. Parse reads a table
// strictly, Open follows a file, Table.Cost prices a call or a turn. A model that is not in
// the table has no cost; the package never guesses one.
package price

import (
	_ "embed"
	"math"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
)

// Table is a set of prices. It does not change after Parse.
type Table struct {
	Version string
	AsOf    string // the month in which the rows were last compared with what is published
	Origin  string // the file, or "built in"
	Rows    []Row
}

// Row is a price in US dollars per million tokens, which is the same number in
// millionths of a dollar per token.
type Row struct {
	Provider string `toml:"provider"` // of the agent; "": any
	// Model is a name, which a date or a region may follow (-20…, @…), or a pattern with *.
	Model string `toml:"model"`
	// From is the first day (UTC) on which the price holds; "": always.
	From string `toml:"from"`
	// PromptOver is the length of the prompt, cache included, beyond which it holds.
	PromptOver int64   `toml:"prompt_over"`
	In         float64 `toml:"in"`
	Out        float64 `toml:"out"`
	CacheRead  float64 `toml:"cache_read"`
	CacheWrite float64 `toml:"cache_write"`
}

//go:embed prices.toml
var builtIn string

// Default is the table that comes with the program.
var Default = sync.OnceValue(func() *Table {
	t, err := Parse("built in", builtIn)
	if err != nil {
		panic("price: " + err.Error()) // a test reads it
	}
	return t
})

// maxTokens bounds what is multiplied: no model takes a prompt of that length, and what
// a client announces is not trusted.
const maxTokens = 1 << 40

// Cost prices what was used, in millionths of a dollar. Reasoning costs what output costs.
func (t *Table) Cost(provider string, at time.Time, u thole.Usage) (micros int64, known bool) {
	r, ok := t.find(provider, u.Model, at, bound(u.Input)+bound(u.CacheRead)+bound(u.CacheWrite))
	if !ok {
		return 0, false
	}
	return round(tokens(u.Input)*r.In + tokens(u.CacheRead)*r.CacheRead + tokens(u.CacheWrite)*r.CacheWrite + (tokens(u.Output)+tokens(u.Reasoning))*r.Out), true
}

// Most is the most that a call can cost: its input may all be written to the cache, at
// whatever length of prompt is the dearest.
func (t *Table) Most(provider, model string, at time.Time, input, output int64) (micros int64, known bool) {
	most := 0.0
	for _, over := range t.steps(input) {
		r, ok := t.find(provider, model, at, over)
		if !ok {
			continue
		}
		known = true
		most = max(most, tokens(input)*max(r.In, r.CacheRead, r.CacheWrite)+tokens(output)*r.Out)
	}
	return round(most), known
}

// steps are the lengths of a prompt of at most input tokens at which a price may change.
func (t *Table) steps(input int64) []int64 {
	all := []int64{0, bound(input)}
	for _, r := range t.Rows {
		if r.PromptOver > 0 && r.PromptOver < bound(input) {
			all = append(all, r.PromptOver+1)
		}
	}
	return all
}

// find returns the row of a model: the one of this provider before that of any, the exact
// name before a pattern, the newest that holds on the day, for the longest prompt.
func (t *Table) find(provider, model string, at time.Time, prompt int64) (best Row, found bool) {
	day := at.UTC().Format(time.DateOnly)
	for _, r := range t.Rows {
		if r.Provider != "" && r.Provider != provider || r.From > day || r.PromptOver > 0 && r.PromptOver >= prompt || !r.names(model) {
			continue
		}
		if !found || r.before(best) {
			best, found = r, true
		}
	}
	return best, found
}

func (r Row) before(o Row) bool {
	switch {
	case (r.Provider == "") != (o.Provider == ""):
		return r.Provider != ""
	case r.pattern() != o.pattern():
		return !r.pattern()
	case len(r.Model) != len(o.Model):
		return len(r.Model) > len(o.Model)
	case r.From != o.From:
		return r.From > o.From
	}
	return r.PromptOver > o.PromptOver
}

func (r Row) pattern() bool { return strings.Contains(r.Model, "*") }

func (r Row) names(model string) bool {
	if r.pattern() {
		return match(r.Model, model)
	}
	rest, ok := strings.CutPrefix(model, r.Model)
	return ok && (rest == "" || strings.HasPrefix(rest, "-20") || rest[0] == '@')
}

// match compares text with a pattern in which * is any text.
func match(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[last])
}

func bound(n int64) int64 { return min(max(n, 0), maxTokens) }

func tokens(n int64) float64 { return float64(bound(n)) }

func round(micros float64) int64 { return int64(math.Floor(micros + 0.5)) }
