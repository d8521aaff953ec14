package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store"
	"github.com/tholehq/thole/internal/store/storetest"
)

// TestCheckLooksRowsUp: each rule reads its tables once and looks other rows up by an
// index. A second scan inside of a scan would make the check quadratic.
func TestCheckLooksRowsUp(t *testing.T) {
	db := storetest.SQLite(t)
	for _, rule := range store.DeliveryRules() {
		err := db.View(t.Context(), func(tx *sqldb.Tx) error {
			rows, err := tx.Query("explain query plan " + rule[1])
			if err != nil {
				return err
			}
			defer rows.Close()
			scans := []string{}
			for rows.Next() {
				var id, parent, other int
				var detail string
				if err := rows.Scan(&id, &parent, &other, &detail); err != nil {
					return err
				}
				if strings.HasPrefix(detail, "SCAN ") {
					scans = append(scans, detail)
				}
			}
			if len(scans) > 1 {
				t.Errorf("%s: %s", rule[0], fmt.Sprint(scans))
			}
			return rows.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
