package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/platform/httpapi"
)

func uuid(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

// A list of jobs is walked by its cursors, and a decision reaches the batch that
// the path names.
func TestDeliveriesAreWalkedAndDecided(t *testing.T) {
	var closed wire.BatchParams
	g := newRig(t, func(c *httpapi.Config) {
		c.Deliveries = func(method string) httpapi.Method {
			return func(_ context.Context, _ thole.Actor, raw json.RawMessage) (any, error) {
				switch method {
				case wire.JobList: // five jobs, newest first
					var p wire.JobListParams
					_ = json.Unmarshal(raw, &p)
					out := []wire.Job{}
					for n := 5; n > 0 && len(out) < p.Limit; n-- {
						if p.After == "" || uuid(n) < p.After {
							out = append(out, wire.Job{Status: "running", JobID: uuid(n)})
						}
					}
					return out, nil
				case wire.BatchInspect:
					var p wire.BatchParams
					_ = json.Unmarshal(raw, &p)
					return wire.Batch{ReplayPolicy: "automatic", BatchID: p.BatchID, SourceThreadID: "thread of " + p.BatchID, Endpoint: "home"}, nil
				case wire.BatchClose:
					return wire.Batch{ReplayPolicy: "automatic"}, json.Unmarshal(raw, &closed)
				}
				return nil, thole.Errorf(thole.CodeInternal, "unexpected %s", method)
			}
		}
	})
	seen, path := "", "/jobs?limit=2"
	for pages := 0; path != "" && pages < 5; pages++ {
		var l obj
		g.me.call(200, "GET", path, nil, &l)
		for _, j := range items(l) {
			seen += " " + j.(obj)["job_id"].(string)[35:]
		}
		if path = ""; l["next"] != nil {
			path = "/jobs?limit=2&cursor=" + l["next"].(string)
		}
	}
	if seen != " 5 4 3 2 1" {
		t.Errorf("walked%s", seen)
	}
	g.me.call(200, "POST", "/batches/"+uuid(7)+"/close", obj{"reason": "operator_confirmed_delivery"}, nil)
	if want := (wire.BatchParams{BatchID: uuid(7), SourceThreadID: "thread of " + uuid(7), Endpoint: "home", Reason: "operator_confirmed_delivery"}); closed != want {
		t.Errorf("closed %+v", closed)
	}
}
