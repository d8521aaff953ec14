package source

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"unicode"
	"unicode/utf8"

	thole "github.com/tholehq/thole"
)

const (
	// maxSlug bounds the words of a branch's name.
	maxSlug = 40
	suffix  = 4
)

// BranchPrefix is before the name of every branch that thole makes.
const BranchPrefix = "thole/"

// Slug is a message as the name of a branch, without BranchPrefix: its first words and
// four characters that follow from the thread's id, so that a repeated request gives
// the same name and two threads of one message do not. Every message gives a name that
// git accepts, in lower case.
func Slug(message string, id thole.ThreadID) string {
	var slug string
	for _, word := range strings.FieldsFunc(strings.ToValidUTF8(strings.ToLower(message), " "), apart) {
		word = strings.TrimLeftFunc(word, unicode.IsMark)
		if word == "" {
			continue
		}
		if slug == "" {
			slug = bounded(word, maxSlug)
		} else if slug += "-" + word; len(slug) > maxSlug {
			slug = slug[:len(slug)-len(word)-1]
			break
		}
		if len(slug) == maxSlug {
			break
		}
	}
	if slug == "" {
		slug = "work"
	}
	sum := sha256.Sum256([]byte(id))
	return slug + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:suffix]
}

// apart reports whether a character stands between words.
func apart(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }

// bounded is the beginning of a word, in whole characters.
func bounded(word string, limit int) string {
	for len(word) > limit {
		_, n := utf8.DecodeLastRuneInString(word)
		word = word[:len(word)-n]
	}
	return word
}
