package daemon

import (
	"encoding/json"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
)

func TestNormalizePolicy(t *testing.T) {
	yes, no := true, false
	worst := thole.DeliveryPolicy{ReadOnly: false, RequiresApproval: true, RequiresNetwork: true, RequiresWriteAccess: true}
	for name, c := range map[string]struct {
		flags wire.Policy
		file  string
		want  thole.DeliveryPolicy
	}{
		"nothing stated":        {wire.Policy{}, ``, worst},
		"unrelated metadata":    {wire.Policy{}, `{"ticket": 7}`, worst},
		"file":                  {wire.Policy{}, `{"delivery_policy":{"read_only":true,"requires_approval":false,"requires_network":false,"requires_write_access":false}}`, thole.DeliveryPolicy{ReadOnly: true}},
		"part of a file":        {wire.Policy{}, `{"delivery_policy":{"read_only":true}}`, thole.DeliveryPolicy{ReadOnly: true, RequiresApproval: true, RequiresNetwork: true, RequiresWriteAccess: true}},
		"flag over file":        {wire.Policy{ReadOnly: &no, RequiresNetwork: &yes}, `{"delivery_policy":{"read_only":true,"requires_network":false}}`, worst},
		"flags alone":           {wire.Policy{ReadOnly: &yes, RequiresApproval: &no, RequiresNetwork: &no, RequiresWriteAccess: &no}, ``, thole.DeliveryPolicy{ReadOnly: true}},
		"null is not stated":    {wire.Policy{}, `{"delivery_policy":{"read_only":null}}`, worst},
		"an empty policy block": {wire.Policy{}, `{"delivery_policy":{}}`, worst},
	} {
		got, err := normalize(c.flags, json.RawMessage(c.file))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := normalize(wire.Policy{}, json.RawMessage(`{"delivery_policy":{"read_only":"yes"}}`)); thole.CodeOf(err) != thole.CodeInvalid {
		t.Errorf("a policy of the wrong type: %v", err)
	}
}

func FuzzNormalizePolicy(f *testing.F) {
	f.Add(`{"delivery_policy":{"read_only":true}}`)
	f.Add(`{"delivery_policy":[]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		got, err := normalize(wire.Policy{}, json.RawMessage(doc))
		if err != nil || doc == "" {
			return
		}
		var in struct {
			P map[string]any `json:"delivery_policy"`
		}
		if json.Unmarshal([]byte(doc), &in) == nil && len(in.P) == 0 && got != thole.UnknownDeliveryPolicy {
			t.Fatalf("%s became %+v", doc, got)
		}
	})
}

func TestStaying(t *testing.T) {
	now, idle := time.Now(), 10*time.Minute
	served := func(t thole.Target) bool { return t == thole.TargetThole }
	for name, c := range map[string]struct {
		p    delivery.Pending
		stay bool
	}{
		"nothing":                        {delivery.Pending{}, false},
		"a running job":                  {delivery.Pending{RunningJobs: 1}, true},
		"a followed turn, for hours":     {delivery.Pending{Observing: now.Add(2 * time.Hour), Near: now.Add(2 * time.Hour)}, true},
		"a deadline within the timeout":  {delivery.Pending{Near: now.Add(idle)}, true},
		"something overdue":              {delivery.Pending{Near: now.Add(-time.Hour)}, true},
		"a receiver that is away":        {delivery.Pending{Next: now.Add(time.Minute)}, false},
		"a long window":                  {delivery.Pending{Near: now.Add(idle + time.Second)}, false},
		"ready, with a channel":          {delivery.Pending{Ready: map[thole.Target]int64{thole.TargetThole: 1}}, true},
		"ready, and no channel attached": {delivery.Pending{Ready: map[thole.Target]int64{thole.TargetCLI: 9}}, false},
	} {
		if got := Staying(c.p, now, idle, served); (got != "") != c.stay {
			t.Errorf("%s: %q", name, got)
		}
	}
}
