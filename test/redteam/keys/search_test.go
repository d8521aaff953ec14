//go:build linux

package keys

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
)

// search is a hunt for one word in many places. Each place has controls, words that are
// known to be there: where one is not found, nothing was searched.
type search struct {
	forms [][]byte // the word as it is and as it is commonly encoded

	mu    sync.Mutex // guards what follows
	found []string   // what was found, and where
}

func newSearch(word string) *search {
	s := &search{forms: [][]byte{[]byte(word), []byte(hex.EncodeToString([]byte(word)))}}
	for shift := range 3 { // where in its group of three bytes a word begins is unknown
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + word))
		skip := []int{0, 2, 3}[shift]
		text = text[skip : len(text)-2]
		s.forms = append(s.forms, []byte(text))
	}
	var wide []byte
	for _, c := range utf16.Encode([]rune(word)) {
		wide = binary.LittleEndian.AppendUint16(wide, c)
	}
	s.forms = append(s.forms, wide)
	return s
}

// longest is how much of a text must be kept so that nothing is lost at a seam.
func (s *search) longest() int {
	n := 0
	for _, f := range s.forms {
		n = max(n, len(f))
	}
	return n
}

// text looks into one text and notes what follows the word, which says which key it is.
func (s *search) text(place string, text []byte) {
	for i, form := range s.forms {
		if at := bytes.Index(text, form); at >= 0 {
			after := text[at:min(len(text), at+len(form)+40)]
			s.mu.Lock()
			s.found = append(s.found, fmt.Sprintf("%s: %q (form %d)", place, after, i))
			s.mu.Unlock()
			return
		}
	}
}

// seen is what a place held: which of the controls were there.
type seen struct {
	controls []string
	missing  map[string]bool
	size     int64
}

func watch(controls ...string) *seen {
	m := map[string]bool{}
	for _, c := range controls {
		m[c] = true
	}
	return &seen{controls: controls, missing: m}
}

func (n *seen) text(text []byte) {
	n.size += int64(len(text))
	for c := range n.missing {
		if bytes.Contains(text, []byte(c)) {
			delete(n.missing, c)
		}
	}
}

// err is why nothing was proven.
func (n *seen) err(place string) error {
	if len(n.missing) == 0 {
		return nil
	}
	var lack []string
	for c := range n.missing {
		lack = append(lack, c)
	}
	slices.Sort(lack)
	return fmt.Errorf("%s was not really searched: %d bytes without %q", place, n.size, lack)
}

// tree looks into every file below a directory, packed ones unpacked too.
func (s *search) tree(dir string, n *seen, skip ...string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // gone meanwhile
		case err != nil:
			return err
		case slices.Contains(skip, path):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		s.text("the name of "+path, []byte(path))
		if d.Type()&fs.ModeSymlink != 0 {
			to, _ := os.Readlink(path)
			s.text("the link "+path, []byte(to))
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		n.text(text)
		s.text(path, text)
		for _, plain := range unpack(text) {
			n.text(plain)
			s.text(path+" unpacked", plain)
		}
		return nil
	})
}

// unpack returns the plain texts of the zstd frames in a file.
func unpack(text []byte) (out [][]byte) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return nil
	}
	defer d.Close()
	for magic := []byte{0x28, 0xb5, 0x2f, 0xfd}; ; text = text[1:] {
		at := bytes.Index(text, magic)
		if at < 0 {
			return out
		}
		text = text[at:]
		if plain, err := d.DecodeAll(text, nil); err == nil || len(plain) > 0 {
			out = append(out, plain)
		}
	}
}

// process looks into the memory, the environment and the command line of a process.
func (s *search) process(pid int, n *seen) error {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	name, _ := os.ReadFile(filepath.Join(proc, "comm"))
	place := fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(name)))
	for _, file := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(filepath.Join(proc, file))
		if err != nil {
			return err
		}
		n.text(text)
		s.text(place+" "+file, text)
	}
	maps, err := os.ReadFile(filepath.Join(proc, "maps"))
	if err != nil {
		return err
	}
	mem, err := os.Open(filepath.Join(proc, "mem"))
	if err != nil {
		return err
	}
	defer mem.Close()
	pages, err := os.Open(filepath.Join(proc, "pagemap"))
	if err != nil {
		return err
	}
	defer pages.Close()
	held := watch(n.controls...) // what is in its files is no proof that its memory was read
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil {
			return fmt.Errorf("%s: %q: %w", place, line, err)
		}
		if rights[0] != 'r' || strings.Contains(line, "[v") {
			continue
		}
		s.region(place+" memory", mem, pages, from, to, held)
	}
	n.size += held.size
	return held.err(place + " memory")
}

// region looks into the pages of a mapping that are there. A page that goes away in
// between is no loss: it is the process's no more.
func (s *search) region(place string, mem, pages *os.File, from, to uint64, n *seen) {
	const page, step = 4096, 1024 // bytes, and pages in one go
	var carry []byte
	for at := from; at < to; at += step * page {
		count := min(step, (to-at)/page)
		entries := make([]byte, 8*count)
		if got, err := pages.ReadAt(entries, int64(at/page*8)); err != nil && got < len(entries) {
			return
		}
		for i := uint64(0); i < count; {
			there := func(i uint64) bool { return binary.LittleEndian.Uint64(entries[8*i:])>>62 != 0 }
			if !there(i) {
				carry = nil
				i++
				continue
			}
			end := i
			for end < count && there(end) {
				end++
			}
			text := make([]byte, uint64(len(carry))+(end-i)*page)
			copy(text, carry)
			got, err := mem.ReadAt(text[len(carry):], int64(at+i*page))
			text = text[:len(carry)+got]
			if err == nil || got > 0 {
				n.text(text)
				s.text(place, text)
			}
			carry = bytes.Clone(text[max(0, len(text)-s.longest()):])
			i = end
		}
	}
}
