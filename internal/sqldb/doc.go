// Package sqldb is one SQL database on two engines, SQLite (one process owns the
// file) and PostgreSQL (several processes share it): durable transactions with
// named steps, migrations, backup, and a bus that wakes readers after a commit. It
// knows no table but schema_migrations.
//
// Open gives a DB. Update runs one durable transaction under the name of a
// durable step, View one read-only snapshot. Inside, queries use $1 placeholders
// and the common subset of both engines: text, bigint and boolean columns, JSON
// as text, time as Unix milliseconds, no now(), no arrays, no deferrable
// constraints. Where the engines need different text, the caller writes both
// (Tx.ForUpdate, DB.Engine).
//
// Rules for a transaction function:
//   - It may run more than once (PostgreSQL retries serialization failures and
//     deadlocks), so its only effects are through the Tx and AfterCommit.
//   - It must not block on anything but the Tx: on SQLite it holds up every
//     other writer.
//   - Read-then-write must lock what it read with Tx.ForUpdate: PostgreSQL runs
//     read committed.
//   - A limit that is a parameter is written "limit $n + 0": SQLite plans a
//     statement with a bare one again at every call.
//   - Rows are closed before the next statement; a failed statement dooms the
//     transaction on both engines, so use "on conflict do nothing" where a
//     duplicate is an outcome.
//
// It refuses a database newer than the binary, a file others could read, and a
// file that another process owns.
package sqldb
