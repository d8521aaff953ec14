package executors_test

import (
	"os"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/gateway"
)

// The recorded calls of a turn are for those who may see its thread.
func TestRecordedCalls(t *testing.T) {
	o := newOwner(t)
	id := o.thread()
	turn := o.start(id, "sim: say hi")
	if r := got[executors.CallsResult](o, executors.MethodCalls, executors.CallsParams{Thread: id, Turn: turn}); r.Calls == nil || len(r.Calls) != 0 || !r.Recording {
		t.Errorf("before a call: %+v", r)
	}
	o.records.Record(gateway.Call{Claim: gateway.Claim{Thread: id, Turn: turn}, Model: "m", At: time.Now()}, []byte(`{"model":"m"}`)).End(gateway.Result{Status: 200})
	r := got[executors.CallsResult](o, executors.MethodCalls, executors.CallsParams{Thread: id, Turn: turn})
	if len(r.Calls) != 1 || r.Calls[0].Status != 200 {
		t.Fatalf("%+v", r)
	}
	if body, err := os.ReadFile(r.Calls[0].Request); err != nil || string(body) != `{"model":"m"}` {
		t.Errorf("%s, %v", body, err)
	}
	if v, err := o.ask(stranger, executors.MethodCalls, executors.CallsParams{Thread: id, Turn: turn}); thole.CodeOf(err) != thole.CodeNotFound {
		t.Errorf("a stranger got %+v, %v", v, err)
	}
	if v, err := o.ask(me, executors.MethodCalls, executors.CallsParams{Thread: id, Turn: "../" + turn}); err == nil {
		t.Errorf("%+v", v)
	}
}
