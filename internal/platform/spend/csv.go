package spend

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

var columns = []string{"runs", "calls", "input", "output", "reasoning", "cache_read", "cache_write", "cost_usd", "unpriced_runs", "unknown_calls", "differing_runs"}

// WriteCSV writes the groups, and the total as the last row.
func WriteCSV(w io.Writer, by string, u Usage) error {
	out := csv.NewWriter(w)
	row := func(key string, s Sum) {
		cells := []string{cell(key)}
		for _, n := range []int64{s.Runs, s.Calls, s.Input, s.Output, s.Reasoning, s.CacheRead, s.CacheWrite} {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		cells = append(cells, strconv.FormatFloat(float64(s.CostMicros)/1e6, 'f', 6, 64))
		for _, n := range []int64{s.Unpriced, s.Unknown, s.Differs} {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		_ = out.Write(cells) // Error has it
	}
	if by == "" {
		by = "total"
	}
	_ = out.Write(append([]string{by}, columns...))
	for _, g := range u.Groups {
		row(g.Key, g)
	}
	row("total", u.Total)
	out.Flush()
	return out.Error()
}

// cell keeps a spreadsheet from running what an agent named a model.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
