// Package nearest finds the word that was meant. It knows no words of its own.
package nearest

import "strings"

// Of returns the words closest to one that was misspelt, in their order; none if none is
// close. Case does not count.
func Of(word string, words []string) (like []string) {
	word = strings.ToLower(word)
	best := max(1, min(3, len(word)/3)) // at most so many letters are wrong
	for _, w := range words {
		switch d := distance(word, strings.ToLower(w)); {
		case d < best:
			best, like = d, []string{w}
		case d == best:
			like = append(like, w)
		}
	}
	return like
}

// distance counts letters to add, drop, change or swap with their neighbour.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range y {
		rows[0][j+1] = j + 1
	}
	for i := range x {
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			d := min(rows[i][j+1]+1, rows[i+1][j]+1, rows[i][j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(x)][len(y)]
}
