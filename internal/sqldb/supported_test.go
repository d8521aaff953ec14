package sqldb

import (
	"testing"

	thole "github.com/tholehq/thole"
)

func TestOldServersAndOtherEncodingsAreRefused(t *testing.T) {
	for _, c := range []struct {
		version  int
		encoding string
		ok       bool
	}{{130023, "UTF8", false}, {140000, "UTF8", true}, {180004, "UTF8", true}, {180004, "LATIN1", false}, {180004, "SQL_ASCII", false}} {
		err := supported(c.version, c.encoding)
		if (err == nil) != c.ok || err != nil && (thole.CodeOf(err) != thole.CodeUnsupported || thole.HintOf(err) == "") {
			t.Errorf("%d with %s: %v", c.version, c.encoding, err)
		}
	}
}
