package executord

import (
	"context"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/executord/wire"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/strictjson/exacttest"
)

// A request is known by the exact names of its members.
func TestRequestsAreKnownByTheirExactNames(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[wire.RunRequest](), reflect.TypeFor[wire.ReplyRequest](), reflect.TypeFor[wire.CancelRequest](), reflect.TypeFor[wire.SteerRequest](), reflect.TypeFor[wire.AckRequest](), reflect.TypeFor[wire.JobRequest](), reflect.TypeFor[wire.JobEnd](), reflect.TypeFor[wire.ServerRequest]()} {
		t.Run(typ.Name(), func(t *testing.T) {
			exacttest.Variants(t, typ, func(raw []byte) (any, error) {
				p := reflect.New(typ)
				err := strictjson.UnmarshalKnown(raw, p.Interface())
				return p.Interface(), err
			})
		})
	}
	h := jsonhttp.Handle(1<<20, func(_ context.Context, in wire.CancelRequest) (wire.CancelRequest, error) { return in, nil })
	for body, want := range map[string]int{`{"run":"r"}`: 200, `{"run":"r","Kill":true}`: 400, `{"run":"r","kill":false,"KILL":true}`: 400, `{"run":"r","k\u0049ll":true}`: 400} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/cancel", strings.NewReader(body)))
		if w.Code != want {
			t.Errorf("%s: %d, want %d: %s", body, w.Code, want, w.Body)
		}
	}
}
