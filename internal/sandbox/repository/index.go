package repository

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxIndex bounds what is read of an index, some ten million files, and maxName a path
// in it.
const (
	maxIndex = 2 << 30
	maxName  = 64 << 10
)

// gitlinks are the paths in the index of a git directory that are other repositories: git
// goes into each of them, wherever it came from.
func gitlinks(git, common string) (map[string]bool, error) {
	sum := 20
	if format, _ := configured(filepath.Join(common, "config"), "extensions.objectformat"); strings.EqualFold(format, "sha256") {
		sum = 32
	}
	links := map[string]bool{}
	base, err := indexLinks(filepath.Join(git, "index"), sum, links)
	if err == nil && base != "" {
		_, err = indexLinks(filepath.Join(git, "sharedindex."+base), sum, links)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return links, err
}

// indexLinks adds the gitlinks of one index file, and returns the name of the one that it
// shares entries with.
func indexLinks(path string, sum int, links map[string]bool) (base string, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r := bufio.NewReaderSize(io.LimitReader(f, maxIndex), maxName)
	var head [12]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	version, count := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:])
	if string(head[:4]) != "DIRC" || version < 2 || version > 4 {
		return "", fmt.Errorf("%s is no index that is known", path)
	}
	var name []byte
	for range count {
		var linked bool
		if name, linked, err = indexEntry(r, version, sum, name); err != nil {
			return "", fmt.Errorf("read %s: %w", path, err)
		}
		if linked {
			links[string(name)] = true
		}
	}
	for { // extensions, and then the sum of all
		part, err := r.Peek(8)
		if err != nil || len(part) < 8 {
			return "", nil
		}
		size := int(binary.BigEndian.Uint32(part[4:]))
		if string(part[:4]) == "link" && size >= sum {
			shared, err := r.Peek(8 + sum)
			if err != nil {
				return "", err
			}
			return hex.EncodeToString(shared[8:]), nil
		}
		if _, err := r.Discard(8 + size); err != nil {
			return "", nil //nolint:nilerr // it was the sum
		}
	}
}

// indexEntry reads one entry after another whose name was before.
func indexEntry(r *bufio.Reader, version uint32, sum int, before []byte) (name []byte, linked bool, err error) {
	const stat = 40 // before the object's name
	fixed := make([]byte, stat+sum+2)
	if _, err := io.ReadFull(r, fixed); err != nil {
		return nil, false, err
	}
	linked = binary.BigEndian.Uint32(fixed[24:])>>12 == 0o16
	flags, size := binary.BigEndian.Uint16(fixed[stat+sum:]), len(fixed)
	if flags&0x4000 != 0 && version > 2 {
		if _, err := r.Discard(2); err != nil {
			return nil, false, err
		}
		size += 2
	}
	if version == 4 { // what to take from the end of the name before, and what to add
		cut, err := offset(r)
		if err != nil || cut > len(before) {
			return nil, false, errors.Join(err, errors.New("a name goes back too far"))
		}
		rest, err := r.ReadSlice(0)
		if err == nil && len(before)-cut+len(rest) > maxName {
			err = bufio.ErrBufferFull
		}
		if err != nil {
			return nil, false, err
		}
		return append(before[:len(before)-cut], rest[:len(rest)-1]...), linked, nil
	}
	rest, err := r.ReadSlice(0)
	if err != nil {
		return nil, false, err
	}
	name = append(before[:0], rest[:len(rest)-1]...)
	size += len(rest)
	_, err = r.Discard((8 - size%8) % 8)
	return name, linked, err
}

// offset reads a number as packs write it.
func offset(r io.ByteReader) (int, error) {
	c, err := r.ReadByte()
	n := int(c & 0x7f)
	for err == nil && c&0x80 != 0 && n < maxIndex {
		if c, err = r.ReadByte(); err == nil {
			n = (n+1)<<7 | int(c&0x7f)
		}
	}
	return n, err
}
