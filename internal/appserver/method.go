package appserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/protocol/app"
)

// method is one request of the contract, ready to be served.
type method struct {
	name         string
	experimental bool
	extension    bool
	optional     bool
	params       reflect.Type // nil: whatever is sent is ignored
	required     []member
	// rules are the fates of members that params has no field for.
	rules map[string]rule
	// gated are members that need a capability of their own.
	gated map[string]bool // true: the extension, false: experimental
	// key says what the request is serialized with (inThread and its siblings); nil: with
	// nothing.
	key func(c *conn, params any) (lane, serial.Mode)
	run func(ctx context.Context, c *conn, params any) (answer, error)
}

// answer is what a processor gives back: the result, frames right after it, and
// what happens once they are queued. undo runs instead when it failed.
type answer struct {
	result any
	after  []jsonrpc.Frame
	then   func()
	undo   func()
	// rest makes the result and the frames when the request's lane is free again. It is
	// for what may take long: histories, and programs that run.
	rest func(ctx context.Context) (any, []jsonrpc.Frame, error)
	// release ends a conn.hold that the processor began, when the answer is queued.
	release func()
}

// later answers after the earlier requests of the connection about the same thing whose
// answers have a rest: a client that does not wait for them hears of its subscriptions
// in the order in which it asked.
func later(v any, after ...jsonrpc.Frame) answer {
	return answer{rest: func(context.Context) (any, []jsonrpc.Frame, error) { return v, after, nil }}
}

func result(v any, err error) (answer, error) { return answer{result: v}, err }

// table is the contract by name, to be filled with processors.
func table() map[string]*method {
	t, rules := map[string]*method{}, Rules()
	for _, m := range app.Methods() {
		if m.Direction != app.FromClient {
			continue
		}
		e := &method{name: m.Name, experimental: m.Experimental, extension: m.Extension, optional: m.Optional, rules: rules[m.Name]}
		if m.Params != nil {
			e.params = reflect.TypeOf(m.Params)
			e.required = required(e.params)
		}
		t[m.Name] = e
	}
	return t
}

// member is one that an object cannot do without, with those of its own.
type member struct {
	name string
	in   []member
}

// required lists the members that a params type cannot do without: those whose
// tag does not let them be left out.
func required(t reflect.Type) []member {
	var all []member
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			all = append(all, required(f.Type)...)
			continue
		}
		if name, rest, _ := strings.Cut(f.Tag.Get("json"), ","); rest == "" {
			m := member{name: name}
			if f.Type.Kind() == reflect.Struct {
				m.in = required(f.Type)
			}
			all = append(all, m)
		}
	}
	return all
}

// missing reports the first required member that raw lacks.
func missing(raw json.RawMessage, all []member) *jsonrpc.Error {
	if len(all) == 0 {
		return nil
	}
	var members map[string]json.RawMessage
	if strictjson.Unmarshal(raw, &members) != nil {
		return invalid("params is not an object")
	}
	for _, m := range all {
		v, ok := members[m.name]
		if !ok || string(v) == "null" {
			return invalid("missing field `%s`", m.name)
		}
		if bad := missing(v, m.in); bad != nil {
			return bad
		}
	}
	return nil
}

func invalid(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "Invalid request: "+format, args...)
}

// decode reads params. What it returns is a pointer to the params type.
func (m *method) decode(raw json.RawMessage) (any, *jsonrpc.Error) {
	none := len(raw) == 0 || string(raw) == "null"
	switch {
	case none && !m.optional:
		return nil, invalid("missing field `params`")
	case m.params == nil:
		return nil, nil
	case none:
		return reflect.New(m.params).Interface(), nil
	}
	p := reflect.New(m.params)
	if err := strictjson.Unmarshal(raw, p.Interface()); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			field := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
			return nil, invalid("invalid type: %s for `%s`, expected %s", wrong.Value, cmp.Or(field, "params"), strictjson.Kind(wrong.Type))
		}
		return nil, invalid("%v", err)
	}
	if bad := missing(raw, m.required); bad != nil {
		return nil, bad
	}
	if says(m.params) {
		if bad := textless(raw); bad != nil {
			return nil, bad
		}
	}
	return p.Interface(), nil
}

// gate refuses what the connection did not declare.
func (m *method) gate(p *peer, raw json.RawMessage) *jsonrpc.Error {
	if m.experimental && !p.experimental {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s requires experimentalApi capability", m.name)
	}
	if m.extension && !p.extended {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s requires the %s extension", m.name, app.Extension)
	}
	if len(m.rules) == 0 && (len(m.gated) == 0 || p.experimental && p.extended) {
		return nil
	}
	members := membersOf(raw)
	if err := m.judge(members); err != nil {
		return toWire(err)
	}
	for name, extension := range m.gated {
		v, ok := members[name]
		switch {
		case !ok || string(v) == "null":
		case extension && !p.extended:
			return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s.%s requires the %s extension", m.name, name, app.Extension)
		case !extension && !p.experimental:
			return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s.%s requires experimentalApi capability", m.name, name)
		}
	}
	return nil
}

// unknown is the answer to a method that does not exist. Clients probe with it:
// it lists all that do.
func (s *Server) unknown(name string) *jsonrpc.Error {
	return invalid("unknown variant `%s`, expected one of %s", name, s.names)
}

func uintString(n uint64) string { return strconv.FormatUint(n, 10) }
