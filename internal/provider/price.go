package provider

import (
	"strings"

	thole "github.com/tholehq/thole"
)

// price is in US dollars per million tokens.
type price struct {
	model                                string // the name, without the date that may follow
	input, cacheRead, cacheWrite, output float64
}

// PricesAsOf is the month of the price table.
const PricesAsOf = "2025-12"

// prices are the list prices that the makers published for their own services by
// PricesAsOf. They serve CLIs that report no cost; a model that is not here has
// none. Whoever changes a row changes the month.
func prices() []price {
	return []price{
		{"gpt-5-nano", 0.05, 0.005, 0.05, 0.40},
		{"gpt-5-mini", 0.25, 0.025, 0.25, 2},
		{"gpt-5.1-codex-mini", 0.25, 0.025, 0.25, 2},
		{"gpt-5", 1.25, 0.125, 1.25, 10},
		{"gpt-5-codex", 1.25, 0.125, 1.25, 10},
		{"gpt-5.1-codex", 1.25, 0.125, 1.25, 10},
		{"gpt-5.1", 1.25, 0.125, 1.25, 10},
		{"gpt-5.2", 1.75, 0.175, 1.75, 14},
		{"claude-opus-4-5", 5, 0.50, 6.25, 25},
		{"claude-opus-4-1", 15, 1.50, 18.75, 75},
		{"claude-opus-4", 15, 1.50, 18.75, 75},
		{"claude-sonnet-4-5", 3, 0.30, 3.75, 15},
		{"claude-sonnet-4", 3, 0.30, 3.75, 15},
		{"claude-haiku-4-5", 1, 0.10, 1.25, 5},
	}
}

// Cost prices a usage from the table, in millionths of a dollar; nil when the
// model is not in it. Reasoning tokens cost what output costs.
func Cost(u thole.Usage) *int64 {
	for _, p := range prices() {
		if rest, ok := strings.CutPrefix(u.Model, p.model); ok && (rest == "" || strings.HasPrefix(rest, "-20") || rest[0] == '@') {
			micros := int64(float64(u.Input)*p.input + float64(u.CacheRead)*p.cacheRead + float64(u.CacheWrite)*p.cacheWrite +
				float64(u.Output+u.Reasoning)*p.output + 0.5)
			return &micros
		}
	}
	return nil
}
