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

// PricesAsOf is the month in which the table was last compared with what its
// maker and those who resell its models publish.
const PricesAsOf = "2026-11"

// prices are list prices for codex, which reports no cost; the other CLIs do. Only
// models with one price are here: newer ones cost more from some length of prompt
// on, or have changed their price since they came, and then a figure of thole's would
// be a guess. A model that is not here has no cost. A change of a row changes
// the month.
func prices() []price {
	return []price{
		{"gpt-5-mini", 0.25, 0.025, 0.25, 2},
		{"gpt-5", 1.25, 0.125, 1.25, 10},
		{"gpt-5-codex", 1.25, 0.125, 1.25, 10},
		{"gpt-5.1-codex", 1.25, 0.125, 1.25, 10},
		{"gpt-5.1-codex-max", 1.25, 0.125, 1.25, 10},
		{"gpt-5.2", 1.75, 0.175, 1.75, 14},
		{"gpt-5.2-codex", 1.75, 0.175, 1.75, 14},
		{"gpt-5.3-codex", 1.75, 0.175, 1.75, 14},
		{"gpt-5.4-mini", 0.75, 0.075, 0.75, 4.50},
		{"gpt-5.4-nano", 0.20, 0.02, 0.20, 1.25},
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
