package codex

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// modelsLimit bounds the reading of the catalogue, which takes milliseconds.
const modelsLimit = 30 * time.Second

// models reads the catalogue that is built into codex, best first. Which model it
// takes by itself depends on the user's login and settings, so none is the default.
func (p *Provider) models(ctx context.Context, binary string) []provider.Model {
	ctx, cancel := context.WithTimeout(ctx, modelsLimit)
	defer cancel()
	said, err := p.Binary.Say(ctx, binary, "debug", "models", "--bundled")
	if err != nil {
		return nil
	}
	return catalogue([]byte(said))
}

// entry is one model of the catalogue.
type entry struct {
	Slug       string `json:"slug"`
	Title      string `json:"display_name"`
	Visibility string `json:"visibility"`
	Priority   int    `json:"priority"`
	Effort     string `json:"default_reasoning_level"`
	// Inputs are the kinds of input that the model reads.
	Inputs  []string `json:"input_modalities"`
	Efforts []struct {
		Effort string `json:"effort"`
	} `json:"supported_reasoning_levels"`
}

func catalogue(raw []byte) (out []provider.Model) {
	var c struct {
		Models []entry `json:"models"`
	}
	if strictjson.Unmarshal(raw, &c) != nil {
		return nil
	}
	slices.SortStableFunc(c.Models, func(a, b entry) int { return cmp.Compare(a.Priority, b.Priority) })
	for _, e := range c.Models {
		if e.Slug == "" || e.Visibility != "list" { // the others are codex's own helpers
			continue
		}
		m := provider.Model{ID: e.Slug, Title: cmp.Or(e.Title, e.Slug), Effort: e.Effort, Inputs: e.Inputs}
		for _, r := range e.Efforts {
			m.Efforts = append(m.Efforts, r.Effort)
		}
		out = append(out, m)
	}
	return out
}
