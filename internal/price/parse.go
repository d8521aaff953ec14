package price

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/BurntSushi/toml"
	thole "github.com/tholehq/thole"
)

const (
	maxRows = 5000
	// maxPrice is in dollars per million tokens: far beyond any price, and small enough
	// that no product overflows.
	maxPrice = 10_000
)

var versionForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{0,39}$`) })

// Parse reads a table. Every key must be known and every row whole: a price that is left
// out is an error and not free of charge.
func Parse(origin, text string) (*Table, error) {
	var file struct {
		Version string           `toml:"version"`
		AsOf    string           `toml:"as_of"`
		Price   []toml.Primitive `toml:"price"`
	}
	bad := func(format string, args ...any) error {
		return thole.Errorf(thole.CodeInvalid, "prices of %s: "+format, append([]any{origin}, args...)...).
			WithHint("fix the file, or move it away to use the built-in prices")
	}
	meta, err := toml.Decode(text, &file)
	if parse := (toml.ParseError{}); errors.As(err, &parse) {
		return nil, bad("line %d: %s", parse.Position.Line, parse.Message)
	} else if err != nil {
		return nil, bad("%w", err)
	}
	t := &Table{Version: file.Version, AsOf: file.AsOf, Origin: origin}
	if !versionForm().MatchString(t.Version) {
		return nil, bad("version must be 1 to 40 letters, digits, dots or dashes")
	}
	if !form("2006-01", t.AsOf) {
		return nil, bad("as_of must be a month such as 2026-11")
	}
	if len(file.Price) > maxRows {
		return nil, bad("%d rows; at most %d", len(file.Price), maxRows)
	}
	type key struct {
		provider, model, from string
		over                  int64
	}
	seen := map[key]bool{}
	for i, raw := range file.Price {
		var there map[string]any
		var r Row
		if err := errors.Join(meta.PrimitiveDecode(raw, &there), meta.PrimitiveDecode(raw, &r)); err != nil {
			return nil, bad("row %d: %w", i+1, err)
		}
		for _, name := range []string{"model", "in", "out", "cache_read", "cache_write"} {
			if _, ok := there[name]; !ok {
				return nil, bad("row %d (%s) has no %s", i+1, r.Model, name)
			}
		}
		for name := range there {
			if !known[name] {
				return nil, bad("row %d (%s): unknown key %s", i+1, r.Model, name)
			}
		}
		if err := r.check(); err != nil {
			return nil, bad("row %d (%s): %w", i+1, r.Model, err)
		}
		k := key{r.Provider, r.Model, r.From, r.PromptOver}
		if seen[k] {
			return nil, bad("row %d (%s) is there twice", i+1, r.Model)
		}
		seen[k] = true
		t.Rows = append(t.Rows, r)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, bad("unknown key %s", unknown[0])
	}
	return t, nil
}

var known = map[string]bool{"provider": true, "model": true, "from": true, "prompt_over": true, "in": true, "out": true, "cache_read": true, "cache_write": true}

func (r Row) check() error {
	switch {
	case r.Model == "" || len(r.Model) > 200 || strings.ContainsFunc(r.Model, control):
		return errors.New("model must be a name or a pattern")
	case len(r.Provider) > 100 || strings.ContainsFunc(r.Provider, control):
		return errors.New("provider must be the name of an agent's provider")
	case r.From != "" && !form(time.DateOnly, r.From):
		return errors.New("from must be a day such as 2026-11-01")
	case r.PromptOver < 0 || r.PromptOver > maxTokens:
		return errors.New("prompt_over must be a number of tokens")
	}
	for _, p := range []float64{r.In, r.Out, r.CacheRead, r.CacheWrite} {
		if math.IsNaN(p) || p < 0 || p > maxPrice {
			return errors.New("prices are dollars per million tokens, from 0 to 10000")
		}
	}
	return nil
}

func control(c rune) bool { return c < ' ' || c == 0x7f }

// form reports whether text is a date that reads back the same.
func form(layout, text string) bool {
	t, err := time.Parse(layout, text)
	return err == nil && t.Format(layout) == text
}
