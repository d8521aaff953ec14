package ownconfig

import (
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// importForm is how claude's instructions name a file whose text belongs to them.
var importForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|\s)@((?:~/|/)?[A-Za-z0-9_.][A-Za-z0-9_./-]*\.md)\b`)
})

// maxImports is how deep files that name others are followed, as claude does.
const maxImports = 5

// imports lays the files that a text of the user in dir names, and returns the text with
// their places in the session. What is not there stays as it is: it may be no import.
func (r *reader) imports(dir, below string, body []byte, depth int) []byte {
	if depth == maxImports {
		return body
	}
	return importForm().ReplaceAllFunc(body, func(m []byte) []byte {
		parts := importForm().FindSubmatch(m)
		name := string(parts[2])
		from := filepath.Join(dir, name)
		if rest, home := strings.CutPrefix(name, "~/"); home {
			from = filepath.Join(r.Home, rest)
		} else if filepath.IsAbs(name) {
			from = name
		}
		text, err := r.read(from)
		if err != nil {
			return m
		}
		r.imported++
		to := path.Join(laidIn[r.cli], strconv.Itoa(r.imported)+"-"+filepath.Base(from))
		text = r.imports(filepath.Dir(from), path.Dir(to), text, depth+1)
		if !r.lay(Line{From: r.shown(from), Fate: Passed, Why: "imported by another file"}, to, text) {
			return m
		}
		return append(append([]byte(nil), parts[1]...), "@"+strings.TrimPrefix(to, below+"/")...)
	})
}
