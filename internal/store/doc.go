// Package store owns rows: one SQL schema on two engines, SQLite (one process
// owns the file) and PostgreSQL (several processes share it), its migrations,
// and the methods that implement each machine's Store interface.
//
// Open gives a DB. Update runs one durable transaction under the name of a
// durable step, View one read-only snapshot. Inside, queries use $1 placeholders
// and the common subset of both engines: text, bigint and boolean columns, JSON
// as text, time as Unix milliseconds, no now(), no arrays, no deferrable
// constraints. Queries stand as string constants beside the method that runs
// them; schema changes are numbered files in migrations.
//
// Rules for a transaction function:
//   - It may run more than once (PostgreSQL retries serialization failures and
//     deadlocks), so its only effects are through the Tx and AfterCommit.
//   - It must not block on anything but the Tx: on SQLite it holds up every
//     other writer.
//   - Read-then-write must lock what it read with " for update" (PostgreSQL runs
//     read committed; SQLite has one writer and drops the clause).
//   - Rows are closed before the next statement; a failed statement dooms the
//     transaction on both engines, so use "on conflict do nothing" where a
//     duplicate is an outcome.
//
// The package makes no decisions: which transition is legal belongs to the
// machines. It refuses a database newer than the binary, a file others could
// read, and a file that another process owns.
package store
