package shelf

import "testing"

// ListAtMost has lists of that many files until the test ends.
func ListAtMost(t testing.TB, n int) {
	was := maxListed
	maxListed = n
	t.Cleanup(func() { maxListed = was })
}
