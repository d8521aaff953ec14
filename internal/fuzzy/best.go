package fuzzy

import (
	"cmp"
	"slices"
	"strings"
)

// Best are the items whose paths fit a query, best first and at most limit; of equal ones
// the shorter paths come first. A query that asks for nothing finds the outermost.
func Best[T any](query string, items []T, path func(T) string, limit int) []T {
	type match struct {
		item  T
		path  string
		score uint32
	}
	q := Parse(query)
	var all []match
	for _, item := range items {
		at := path(item)
		if q.Empty() {
			all = append(all, match{item, at, 0})
		} else if score, _, ok := q.Match(at); ok {
			all = append(all, match{item, at, score})
		}
	}
	slices.SortFunc(all, func(a, b match) int {
		depth := 0
		if q.Empty() {
			depth = strings.Count(a.path, "/") - strings.Count(b.path, "/")
		}
		return cmp.Or(cmp.Compare(b.score, a.score), depth, len(a.path)-len(b.path), strings.Compare(a.path, b.path))
	})
	out := make([]T, 0, min(len(all), limit))
	for _, m := range all[:min(len(all), limit)] {
		out = append(out, m.item)
	}
	return out
}
