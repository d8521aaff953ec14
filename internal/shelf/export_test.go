package shelf

import (
	"path/filepath"
	"testing"
)

// PackAfter has shelves packed that have more loose objects, until the test ends.
func PackAfter(t testing.TB, n int) {
	was := maxLooseObjects
	maxLooseObjects = n
	t.Cleanup(func() { maxLooseObjects = was })
}

// CountObjects counts the loose objects and the packs of a repository.
func CountObjects(dir string) (loose, packs int) {
	s := listObjects(filepath.Join(dir, "objects"))
	return len(s.loose), len(s.packs)
}

// ListAtMost has lists of that many files until the test ends.
func ListAtMost(t testing.TB, n int) {
	was := maxListed
	maxListed = n
	t.Cleanup(func() { maxListed = was })
}
