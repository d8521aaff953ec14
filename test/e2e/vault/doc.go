// Package vault tries secrets as a person does: the real binary on homes of its own, the
// logins of the real agent CLIs, and a search of every file for what must be in none.
package vault
