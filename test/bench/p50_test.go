package bench

import (
	"slices"
	"time"
)

// p50 is the median of n calls in microseconds.
func p50(n int, call func()) float64 {
	all := make([]time.Duration, n)
	for i := range all {
		from := time.Now()
		call()
		all[i] = time.Since(from)
	}
	slices.Sort(all)
	return float64(all[n/2].Nanoseconds()) / 1000
}
