// Package fuzzy scores how well a query fits a path: all of its characters occur in the
// path in order, better at the beginning of a word and next to each other. The scores are
// those that clients of the Codex app-server know. It knows no files.
package fuzzy

import (
	"slices"
	"strings"
	"unicode"
)

// What a character of the query that was found is worth, and what is lost between two.
const (
	found       = 16
	gapStart    = 3
	gapMore     = 1
	atWord      = 8 // after something that is no part of a word
	atName      = 9 // after a slash, or at the beginning
	atCamel     = atWord - gapStart
	consecutive = gapStart + gapMore
	firstWeight = 2
)

// Bounds of one match, so that no query costs more than it is worth.
const (
	maxQuery = 64
	maxPath  = 4096
)

// Query is what is looked for: words that must all fit.
type Query struct{ words [][]rune }

// Parse reads a query; case does not count.
func Parse(text string) Query {
	var q Query
	for _, w := range strings.Fields(text) {
		if r := []rune(strings.ToLower(w)); len(r) <= maxQuery {
			q.words = append(q.words, r)
		}
	}
	return q
}

// Empty reports whether the query asks for nothing.
func (q Query) Empty() bool { return len(q.words) == 0 }

// Match scores a path. Indices are the characters of the path that fit, in order.
func (q Query) Match(path string) (score uint32, indices []uint32, ok bool) {
	if q.Empty() || len(path) > maxPath {
		return 0, nil, false
	}
	text := []rune(path)
	for _, w := range q.words {
		if !subsequence(w, text) {
			return 0, nil, false
		}
	}
	bonus, lower := bonuses(text), make([]rune, len(text))
	for i, r := range text {
		lower[i] = unicode.ToLower(r)
	}
	for _, w := range q.words {
		s, at := align(w, lower, bonus)
		score += uint32(s)
		indices = append(indices, at...)
	}
	slices.Sort(indices)
	return score, slices.Compact(indices), true
}

func subsequence(word, text []rune) bool {
	i := 0
	for _, r := range text {
		if i < len(word) && unicode.ToLower(r) == word[i] {
			i++
		}
	}
	return i == len(word)
}

// kind is what a character is in a path.
type kind uint8

const (
	other kind = iota
	slash
	lowerCase
	upperCase
	letter
	digit
)

func kindOf(r rune) kind {
	switch {
	case r == '/':
		return slash
	case unicode.IsLower(r):
		return lowerCase
	case unicode.IsUpper(r):
		return upperCase
	case unicode.IsDigit(r):
		return digit
	case unicode.IsLetter(r):
		return letter
	}
	return other
}

// bonuses is what each character is worth besides, for its place.
func bonuses(text []rune) []int {
	out := make([]int, len(text))
	before := slash
	for i, r := range text {
		now := kindOf(r)
		switch {
		case now > slash && before == slash:
			out[i] = atName
		case now > slash && before == other:
			out[i] = atWord
		case before == lowerCase && now == upperCase, before != digit && now == digit:
			out[i] = atCamel
		case now == other:
			out[i] = atWord
		}
		before = now
	}
	return out
}

// cell is the best way to have matched a part of the word with its last character here.
type cell struct {
	score int
	run   int // the bonus of the run of characters that ends here
	from  int // where the character before was found, -1 for none
	ok    bool
}

// align finds the best places of a word that occurs in the text.
func align(word, text []rune, bonus []int) (int, []uint32) {
	rows := make([][]cell, len(word))
	for i := range word {
		rows[i] = make([]cell, len(text))
		best, at := 0, -1 // of the row before, up to two characters back, less the gap
		for j := range text {
			if i > 0 && j >= 2 {
				if at >= 0 {
					best -= gapMore
				}
				if c := rows[i-1][j-2]; c.ok && (at < 0 || c.score-gapStart > best) {
					best, at = c.score-gapStart, j-2
				}
			}
			if text[j] != word[i] {
				continue
			}
			if i == 0 {
				rows[0][j] = cell{found + bonus[j]*firstWeight, bonus[j], -1, true}
				continue
			}
			var c cell
			if at >= 0 {
				c = cell{best + found + bonus[j], bonus[j], at, true}
			}
			if j > 0 {
				if p := rows[i-1][j-1]; p.ok {
					run := max(p.run, consecutive)
					if bonus[j] >= atWord && bonus[j] > run {
						run = bonus[j]
					}
					if s := p.score + found + max(run, bonus[j]); !c.ok || s > c.score {
						c = cell{s, run, j - 1, true}
					}
				}
			}
			rows[i][j] = c
		}
	}
	end := -1
	last := rows[len(word)-1]
	for j, c := range last {
		if c.ok && (end < 0 || c.score > last[end].score) {
			end = j
		}
	}
	at := make([]uint32, len(word))
	for i, j := len(word)-1, end; i >= 0; i-- {
		at[i] = uint32(j)
		j = rows[i][j].from
	}
	return last[end].score, at
}
