package appserver

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/strictjson/exacttest"
	"github.com/tholehq/thole/protocol/app"
)

// Every member of every method of the contract is known by its exact name only.
func TestContractIsKnownByItsExactNames(t *testing.T) {
	for name, m := range table() {
		if m.params == nil {
			continue
		}
		m.required = nil // objects of one member are sent
		t.Run(name, func(t *testing.T) {
			exacttest.Variants(t, m.params, func(raw []byte) (any, error) {
				p, bad := m.decode(raw)
				if bad != nil {
					return nil, bad
				}
				return p, nil
			})
		})
	}
}

// So is every member of a client's answers.
func TestAnswersAreKnownByTheirExactNames(t *testing.T) {
	for kind, typ := range map[event.AskKind]reflect.Type{
		event.AskCommand: reflect.TypeFor[app.ApprovalAnswer](), event.AskPermissions: reflect.TypeFor[app.PermissionsAnswer](),
		event.AskInput: reflect.TypeFor[app.UserInputAnswer](), event.AskElicitation: reflect.TypeFor[app.ElicitationAnswer](),
	} {
		t.Run(string(kind), func(t *testing.T) {
			ask := event.Ask{Kind: kind, Amendment: json.RawMessage(`{"network":{"enabled":true}}`)}
			exacttest.Variants(t, typ, func(raw []byte) (any, error) { return parseAnswer(ask, json.RawMessage(raw)) })
		})
	}
}
