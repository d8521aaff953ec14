package store

import (
	"context"

	"github.com/tholehq/thole/internal/sqldb"
)

// OnLine runs a query where the turn queue's calls run.
func OnLine(ctx context.Context, db *DB, query string) error {
	return db.Batch(ctx, "test.line", "", func() []sqldb.Statement { return []sqldb.Statement{{Text: query}} })
}

// DeliveryRules lists the rules of a check and their statements.
func DeliveryRules() [][2]string { return deliveryRules() }
