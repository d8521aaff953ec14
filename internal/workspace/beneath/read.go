//go:build unix

package beneath

import (
	"fmt"
	"io"
)

// ReadFile reads a regular file below a directory, by names that are no links. It waits for
// no pipe, and one that is longer than limit is an error: what is only half there would be
// taken for the whole.
func ReadFile(dir, path string, limit int64) ([]byte, error) {
	root, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	in, name, err := root.Parent(path, false)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	f, err := in.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		return nil, fmt.Errorf("%s in %s has more than %d bytes", path, dir, limit)
	}
	return text, err
}

// Owner is the user that a directory belongs to.
func Owner(dir string) (int, error) {
	d, err := Open(dir)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	return d.Owner()
}
