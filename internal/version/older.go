package version

import (
	"strconv"
	"strings"
)

// Older compares versions by their numbers. What is no version is not older.
func Older(a, b string) bool {
	x, y := numbers(a), numbers(b)
	for i := range x {
		if x[i] != y[i] {
			return x[i] >= 0 && x[i] < y[i]
		}
	}
	return false
}

func numbers(v string) (n [3]int) {
	v, _, _ = strings.Cut(v, "-")
	parts := strings.Split(v, ".")
	for i := range n {
		n[i] = -1
		if i < len(parts) {
			if d, err := strconv.Atoi(parts[i]); err == nil {
				n[i] = d
			}
		}
	}
	return n
}
