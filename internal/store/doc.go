// Package store owns rows: one SQL schema on SQLite and PostgreSQL (package sqldb),
// and the methods that implement each machine's Store interface.
//
// Queries stand as string constants next to the method that runs them; schema
// changes are numbered files in migrations. The package makes no decisions: which
// transition is legal belongs to the machines.
package store
