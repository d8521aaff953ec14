package source

import (
	"path"
	"strings"
)

// Cone is which files a sparse checkout has: those of some directories with all below, and
// those that lie in the directories above them.
type Cone struct{ whole, files map[string]bool }

// ParseCone reads the patterns that git writes for a sparse checkout in cone mode; ok is false
// for patterns that are written otherwise.
func ParseCone(text string) (c Cone, ok bool) {
	c = Cone{whole: map[string]bool{}, files: map[string]bool{}}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		dir, no := strings.CutPrefix(line, "!")
		dir, rooted := strings.CutPrefix(dir, "/")
		switch {
		case !rooted:
			return c, false
		case no:
			dir, ok = strings.CutSuffix(dir, "*/")
			if dir = unescaped(dir); !ok || !c.whole[dir] {
				return c, false
			}
			delete(c.whole, dir)
			c.files[dir] = true
		case dir == "*":
			c.whole["."] = true
		default:
			if dir, ok = strings.CutSuffix(dir, "/"); !ok || dir == "" || globbed(dir) {
				return c, false
			}
			c.whole[unescaped(dir)] = true
		}
	}
	return c, c.whole["."] || c.files["."]
}

// globbed reports whether a pattern means more than one directory.
func globbed(dir string) bool {
	for i := 0; i < len(dir); i++ {
		switch dir[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		}
	}
	return false
}

// unescaped is a directory of a pattern, "." for the top.
func unescaped(dir string) string {
	if dir = strings.TrimSuffix(dir, "/"); dir == "" {
		return "."
	}
	var out strings.Builder
	for i := 0; i < len(dir); i++ {
		if dir[i] == '\\' && i+1 < len(dir) {
			i++
		}
		out.WriteByte(dir[i])
	}
	return out.String()
}

// Has reports whether a file of the repository is in the checkout.
func (c Cone) Has(file string) bool {
	dir := path.Dir(file)
	if c.files[dir] {
		return true
	}
	for ; ; dir = path.Dir(dir) {
		if c.whole[dir] {
			return true
		}
		if dir == "." || dir == "/" {
			return false
		}
	}
}
