package gateway

import (
	"bytes"
	"time"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// hiddenRate is how many tokens a second a model generates at most without sending them:
// those that hide their reasoning are large and slow.
const hiddenRate = 400

// A service that keeps to a limit sends less than this for it: so much for each token, and
// so much besides.
const mostPerToken, mostBesides = 1 << 10, 64 << 10

// meter reads the usage of an answer as it passes.
type meter struct {
	dialect Dialect
	begun   bool
	events  bool // an event stream, else one JSON object
	pick    picker

	start  []byte // of the current line, until its field is known
	inData bool

	lineLength int
	done       bool // data: [DONE]

	usage thole.Usage
	some  bool // a usage with its input was read
	final bool // the last one was read
}

var (
	dataField = []byte("data:")
	doneText  = []byte("data: [DONE]")
)

func (m *meter) read(p []byte) {
	if !m.begun { // the content type is not asked: some services send a wrong one
		first := bytes.TrimLeft(p, " \t\r\n")
		if len(first) == 0 {
			return
		}
		m.begun, m.events = true, first[0] != '{'
	}
	if !m.events {
		m.pick.read(p)
		return
	}
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		m.readLine(line)
		if ended {
			m.endLine()
		}
		p = rest
	}
}

// readLine takes a part of a line.
func (m *meter) readLine(b []byte) {
	m.lineLength += len(b)
	if need := len(doneText) - len(m.start); need > 0 {
		n := min(need, len(b))
		m.start = append(m.start, b[:n]...)
		if !m.inData && bytes.HasPrefix(m.start, dataField) {
			m.inData = true
			if skip := len(dataField) - (len(m.start) - n); skip > 0 {
				b = b[skip:]
			}
		}
	}
	if m.inData {
		m.pick.read(b)
	}
}

func (m *meter) endLine() {
	blank := m.lineLength == 0 || m.lineLength == 1 && m.start[0] == '\r'
	m.done = m.done || bytes.Equal(m.start, doneText)
	m.start, m.inData, m.lineLength = m.start[:0], false, 0
	if blank {
		m.endEvent()
		m.pick.reset()
	}
}

// endEvent takes the usage of an event. Anthropic sends the input at the start and the
// output, as a sum so far, in each delta of the message; Responses sends both with the
// last event; of chat chunks the last one counts.
func (m *meter) endEvent() {
	switch m.dialect {
	case Anthropic:
		if m.take() && string(bytes.TrimSpace(m.pick.kind)) != `"message_start"` {
			m.final = m.some
		}
	case Responses:
		switch string(bytes.TrimSpace(m.pick.kind)) {
		case `"response.completed"`, `"response.incomplete"`, `"response.failed"`:
			m.final = m.take()
		}
	default:
		m.take()
	}
}

// end takes what the end of the body gives, whole or cut.
func (m *meter) end(whole bool) {
	if m.events {
		m.endEvent()
	} else if whole {
		m.final = m.take() && m.some
	}
	if m.dialect == Chat && m.events {
		m.final = m.some && (m.done || whole)
	}
}

// wireUsage is the usage of all three dialects.
type wireUsage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	// Iterations are what a call did within the service. The figures above leave out those
	// that shortened its context, which are paid for all the same.
	Iterations []struct {
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
		CacheRead  int64 `json:"cache_read_input_tokens"`
		CacheWrite int64 `json:"cache_creation_input_tokens"`
	} `json:"iterations"`
	InputParts struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputParts struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`

	Prompt      *int64 `json:"prompt_tokens"`
	Completion  int64  `json:"completion_tokens"`
	Total       int64  `json:"total_tokens"`
	PromptParts struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionParts struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// take adds what the picker holds to the usage and reports whether there was any.
func (m *meter) take() bool {
	if len(m.pick.usage)+len(m.pick.model) == 0 { // most events have neither
		return false
	}
	var model string
	if strictjson.Unmarshal(m.pick.model, &model) == nil && model != "" && len(model) <= 256 {
		m.usage.Model = model
	}
	var w *wireUsage
	if strictjson.Unmarshal(m.pick.usage, &w) != nil || w == nil {
		return false
	}
	u := &m.usage
	switch m.dialect {
	case Anthropic: // a delta leaves out what did not change
		m.some = m.some || w.Input != nil
		set(&u.Input, w.Input)
		set(&u.Output, w.Output)
		set(&u.CacheRead, w.CacheRead)
		set(&u.CacheWrite, w.CacheWrite)
		var all thole.Usage
		for _, i := range w.Iterations {
			all = all.Plus(thole.Usage{Input: bound(i.Input), Output: bound(i.Output), CacheRead: bound(i.CacheRead), CacheWrite: bound(i.CacheWrite)})
		}
		u.Input, u.Output = max(u.Input, bound(all.Input)), max(u.Output, bound(all.Output))
		u.CacheRead, u.CacheWrite = max(u.CacheRead, bound(all.CacheRead)), max(u.CacheWrite, bound(all.CacheWrite))
		return w.Output != nil
	case Responses:
		if w.Input == nil || w.Output == nil {
			return false
		}
		u.CacheRead, u.Reasoning = bound(w.InputParts.Cached), bound(w.OutputParts.Reasoning)
		u.Input, u.Output = bound(*w.Input-u.CacheRead), bound(*w.Output-u.Reasoning)
	default:
		if w.Prompt == nil {
			return false
		}
		// Some services leave reasoning out of the completion and add it to the total only.
		generated := max(w.Completion, w.Total-*w.Prompt)
		u.CacheRead, u.Reasoning = bound(w.PromptParts.Cached), bound(w.CompletionParts.Reasoning)
		u.Input, u.Output = bound(*w.Prompt-u.CacheRead), bound(generated-u.Reasoning)
	}
	m.some = true
	return true
}

func set(to, from *int64) {
	if from != nil {
		*to = bound(*from)
	}
}

// unknownUsage is an upper bound for a call whose end nobody saw: what was read so far,
// and of the output what may have been generated since the request was sent, in n answers
// side by side. A limit that the service did not keep to bounds nothing.
func unknownUsage(c Call, n int64, seen thole.Usage, received int64, since time.Duration) thole.Usage {
	output := received/2 + int64(since.Seconds()*hiddenRate*float64(n))
	if (received-mostBesides)/mostPerToken <= c.MaxOutput {
		output = min(c.MaxOutput, output)
	}
	if seen.Input+seen.CacheRead+seen.CacheWrite == 0 {
		seen.Input = c.InputEstimate
	}
	seen.Output = max(seen.Output, output-seen.Reasoning)
	if seen.Model == "" {
		seen.Model = c.Model
	}
	return seen
}
