package provider

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tholehq/thole/internal/strictjson"
)

// hookTimeout is how long CLIs let a hook run that says nothing of it, in seconds.
const hookTimeout = 600

// ReadHooks reads hooks as CLIs write them in their settings: by event, a matcher and what
// runs then. What has another form is passed over.
func ReadHooks(raw json.RawMessage, of Hook) (out []Hook) {
	var events map[string]json.RawMessage
	if strictjson.Unmarshal(raw, &events) != nil {
		return nil
	}
	for _, event := range slices.Sorted(maps.Keys(events)) {
		var groups []struct {
			Matcher string `json:"matcher"`
			Hooks   []struct {
				Type    string  `json:"type"`
				Command string  `json:"command"`
				Timeout float64 `json:"timeout"`
				Async   bool    `json:"async"`
			} `json:"hooks"`
		}
		if event == "" || strictjson.Unmarshal(events[event], &groups) != nil {
			continue
		}
		for i, g := range groups {
			for j, h := range g.Hooks {
				one := of
				one.Event, one.Matcher, one.Kind, one.Command = strings.ToLower(event[:1])+event[1:], g.Matcher, h.Type, h.Command
				one.Timeout, one.Async = hookTimeout, h.Async
				if h.Timeout > 0 && h.Timeout < 1e9 {
					one.Timeout = int64(h.Timeout)
				}
				one.Key = strings.Join([]string{of.Path, event, strconv.Itoa(i), strconv.Itoa(j)}, ":")
				out = append(out, one)
			}
		}
	}
	return out
}
