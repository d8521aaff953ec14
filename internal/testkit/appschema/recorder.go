package appschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Line is one message of a connection. Method of an answer is that of its request.
type Line struct {
	FromClient bool
	Method     string
	ID         string
	Params     json.RawMessage // of requests and notifications
	Result     json.RawMessage
	Error      json.RawMessage
}

// Request reports whether the line wants an answer.
func (l Line) Request() bool { return l.Params != nil && l.ID != "" }

// Recorder keeps and checks the traffic of one connection. Safe for concurrent use.
type Recorder struct {
	schema *Schema
	report func(problem string)
	// ServerOnly leaves unchecked what the client sends: tests of bad requests.
	ServerOnly bool

	mu       sync.Mutex
	extended bool
	lines    []Line
	more     chan struct{}
	asked    [2]map[string]string // methods by id, of the client's and of the server's requests
}

// NewRecorder makes one that reports what does not fit.
func (s *Schema) NewRecorder(report func(problem string)) *Recorder {
	return &Recorder{schema: s, report: report, more: make(chan struct{}), asked: [2]map[string]string{{}, {}}}
}

// NewPlainRecorder makes one that checks nothing: for the real server, which is right by
// definition.
func NewPlainRecorder() *Recorder {
	return &Recorder{more: make(chan struct{}), asked: [2]map[string]string{{}, {}}}
}

// Lines are all lines so far and a channel that is closed when there are more.
func (r *Recorder) Lines() ([]Line, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines), r.more
}

// See takes in a message of either side.
func (r *Recorder) See(fromClient bool, raw []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		if fromClient && r.ServerOnly {
			return
		}
		r.problem("a line is no JSON: %v: %.200s", err, raw)
		return
	}
	l := Line{FromClient: fromClient, Method: m.Method, ID: string(m.ID), Params: bytes.Clone(m.Params), Result: bytes.Clone(m.Result), Error: bytes.Clone(m.Error)}
	if l.Method != "" && l.Params == nil {
		l.Params = json.RawMessage("null")
	}
	r.mu.Lock()
	own, other := 0, 1
	if !fromClient {
		own, other = 1, 0
	}
	if m.Method == "" {
		l.Method = r.asked[other][l.ID]
	} else if l.ID != "" {
		r.asked[own][l.ID] = m.Method
	}
	if m.Method == "initialize" && fromClient {
		var p struct {
			Capabilities struct{ Extensions map[string]any }
		}
		_ = json.Unmarshal(m.Params, &p)
		_, r.extended = p.Capabilities.Extensions["thole"]
	}
	extended := r.extended
	r.lines = append(r.lines, l)
	close(r.more)
	r.more = make(chan struct{})
	r.mu.Unlock()
	if r.schema != nil && !(fromClient && r.ServerOnly) {
		r.check(l, raw, extended)
	}
}

func (r *Recorder) problem(format string, args ...any) {
	if r.report != nil {
		r.report(fmt.Sprintf(format, args...))
	}
}

func (r *Recorder) check(l Line, raw []byte, extended bool) {
	name, side := l.Method, "server"
	if l.FromClient {
		side = "client"
	}
	var kinds map[string]*jsonschema.Schema
	var body json.RawMessage
	switch {
	case l.Error != nil:
		return // errors have one shape, which the connection itself reads
	case l.Params != nil && l.FromClient && l.ID == "":
		return // initialized is the only one
	case l.Params != nil && l.FromClient:
		kinds, body = r.schema.requests, l.Params
	case l.Params != nil && l.ID == "":
		kinds, body = r.schema.notifications, l.Params
	case l.Params != nil:
		kinds, body = r.schema.asks, l.Params
	case l.FromClient:
		kinds, body = r.schema.answers, l.Result
	default:
		kinds, body = r.schema.responses, l.Result
	}
	if strings.HasPrefix(name, "thole/") {
		if !extended {
			r.problem("%s sent %s without the extension: %.300s", side, name, raw)
		}
		return
	}
	if extended {
		body = without(body)
	}
	kind := kinds[name]
	if kind == nil {
		r.problem("%s sent %q, which codex does not know: %.300s", side, name, raw)
		return
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = kind.Validate(v)
	}
	if err != nil {
		r.problem("%s %s does not fit: %v\n%.600s", side, name, flat(err), body)
	}
}

// without takes away the members of the extension.
func without(raw json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw
	}
	strip(v)
	out, _ := json.Marshal(v)
	return out
}

func strip(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range extension {
			delete(v, member)
		}
		for _, child := range v {
			strip(child)
		}
	case []any:
		for _, child := range v {
			strip(child)
		}
	}
}

// extension are the members that connections with the extension get.
var extension = []string{"thole", "seq", "tholeSource"}

// flat lists the leaves of a validation error, once each. Of a union only the member
// counts that the value says to be: the others fail by their tag.
func flat(err error) string {
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return err.Error()
	}
	seen := map[string]bool{}
	for _, leaf := range leaves(v) {
		text := leaf.Error()
		seen[strings.TrimPrefix(strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]), "- ")] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), "; ")
}

func leaves(v *jsonschema.ValidationError) (out []*jsonschema.ValidationError) {
	if len(v.Causes) == 0 {
		return []*jsonschema.ValidationError{v}
	}
	var other []*jsonschema.ValidationError
	for _, c := range v.Causes {
		list := leaves(c)
		if len(v.Causes) > 1 && slices.ContainsFunc(list, func(l *jsonschema.ValidationError) bool {
			return len(l.InstanceLocation) == len(v.InstanceLocation)+1 && l.InstanceLocation[len(v.InstanceLocation)] == "type"
		}) {
			other = append(other, list...)
			continue
		}
		out = append(out, list...)
	}
	if len(out) == 0 {
		return other
	}
	return out
}
