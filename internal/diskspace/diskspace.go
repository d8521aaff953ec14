// Package diskspace says how much room a file system has left for us. It is asked
// when a user looks; it watches nothing.
package diskspace

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Low is from where on there may be too little room for what a turn says of itself: a
// database that is written needs room for its log.
const Low = 32 << 20

// Left is how many bytes can still be written below a directory.
func Left(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("look at the disk of %s: %w", dir, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // 32 bits on other systems
}

// Problem says that there is too little room below a directory, "" if there is enough
// or nobody knows.
func Problem(dir string) string {
	left, err := Left(dir)
	if err != nil || left >= Low {
		return ""
	}
	return fmt.Sprintf("the disk of %s is full (%d MB are free): what turns do is not recorded until there is room", dir, left>>20)
}
