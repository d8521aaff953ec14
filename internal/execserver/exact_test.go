package execserver

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/tholehq/thole/internal/strictjson/exacttest"
	"github.com/tholehq/thole/protocol/exec"
)

// Every member of every method's params is known by its exact name only.
func TestParamsAreKnownByTheirExactNames(t *testing.T) {
	for _, params := range []any{
		exec.InitializeParams{}, exec.StartParams{}, exec.ReadParams{}, exec.WriteParams{}, exec.SignalParams{}, exec.ResizeParams{}, exec.ProcessParams{},
		exec.ConfigReadParams{}, exec.HTTPRequestParams{}, exec.PathParams{}, exec.WriteFileParams{}, exec.CreateDirectoryParams{}, exec.WalkParams{},
		exec.RemoveParams{}, exec.CopyParams{}, exec.OpenParams{}, exec.HandleParams{}, exec.ReadBlockParams{}, exec.WriteBlockParams{}, exec.WatchMissingParams{},
	} {
		typ := reflect.TypeOf(params)
		t.Run(typ.Name(), func(t *testing.T) {
			exacttest.Variants(t, typ, func(raw []byte) (any, error) {
				p := reflect.New(typ)
				if e := decode(raw, p.Interface()); e != nil {
					return nil, e
				}
				return p.Interface(), nil
			})
		})
	}
}

// A required member may be written with escapes; one in other case does not count.
func TestRequiredMembersByTheirExactNames(t *testing.T) {
	var p exec.HandleParams
	if e := decode(json.RawMessage(`{"handle\u0049d":"h"}`), &p, "handleId"); e != nil || p.HandleID != "h" {
		t.Errorf("%+v, %v", p, e)
	}
	if e := decode(json.RawMessage(`{"HandleId":"h"}`), &p, "handleId"); e == nil {
		t.Error("another name is taken for it")
	}
}
