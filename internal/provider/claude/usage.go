package claude

import (
	"math"

	thole "github.com/tholehq/thole"
)

// modelUsage is the CLI's running total for one model. It is cumulative over the
// process on some versions and over resumes and forks on others, so a turn's
// share is always the difference to a baseline.
type modelUsage struct {
	Input         int64   `json:"inputTokens"`
	Output        int64   `json:"outputTokens"`
	Thinking      int64   `json:"thinkingTokens"`
	CacheRead     int64   `json:"cacheReadInputTokens"`
	CacheWrite    int64   `json:"cacheCreationInputTokens"`
	CostUSD       float64 `json:"costUSD"`
	ContextWindow int64   `json:"contextWindow"`
}

// since is what was used on top of base, over all models. model names the one to
// report; its context window goes along.
func since(now, base map[string]modelUsage, model string) thole.Usage {
	u := thole.Usage{Model: model}
	var cost float64
	for name, n := range now {
		b := base[name]
		u.Input += n.Input - b.Input
		u.Output += n.Output - b.Output - (n.Thinking - b.Thinking)
		u.Reasoning += n.Thinking - b.Thinking
		u.CacheRead += n.CacheRead - b.CacheRead
		u.CacheWrite += n.CacheWrite - b.CacheWrite
		cost += n.CostUSD - b.CostUSD
		if name == model {
			u.ContextWindow = n.ContextWindow
		}
	}
	micros := int64(math.Round(cost * 1e6))
	u.CostMicros = &micros
	return u
}

// tally adds up a turn's streamed calls. It is the live figure, and the only one
// there is when the CLI dies without a result.
type tally struct {
	done thole.Usage // finished calls; Last is the newest
	call apiUsage    // the call in flight
}

func (t *tally) begin(u *apiUsage) {
	t.end()
	if u != nil {
		t.call = *u
	}
}

func (t *tally) progress(u *apiUsage) {
	if u != nil {
		t.call = *u
	}
}

func (t *tally) end() {
	t.done.Input += t.call.Input
	t.done.Output += t.call.Output
	t.done.CacheRead += t.call.CacheRead
	t.done.CacheWrite += t.call.CacheWrite
	if t.call != (apiUsage{}) {
		t.done.Last = &thole.Tokens{Input: t.call.Input, Output: t.call.Output, CacheRead: t.call.CacheRead, CacheWrite: t.call.CacheWrite}
	}
	t.call = apiUsage{}
}

func (t *tally) total(model string) thole.Usage {
	c := *t
	c.end()
	c.done.Model = model
	return c.done
}
