package store

import "context"

// OnLine runs a query where the turn queue's calls run.
func OnLine(ctx context.Context, db *DB, query string) error {
	return db.batch(ctx, "test.line", "", func() []statement { return []statement{{text: query}} })
}
