package appserver

import (
	"encoding/json"
	"strconv"
	"sync"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/strictjson"
)

// frame is one encoded message to clients, shared by all that get it.
type frame struct {
	method       string
	experimental bool
	extension    bool
	id           string // of a request
	plain        jsonrpc.Frame
	// extra are the params with the extension's members, nil when they have none.
	extra any
	// birth and revision are set on what every connection hears.
	birth    bool
	revision uint64
	// client is the name of the only client that gets it, "" for every one.
	client string

	// seq is the cursor after the event whose last frame this is, 0 for none.
	// Extended connections get it as a member, in an encoding of its own that is
	// made when the first of them needs it.
	seq      uint64
	once     sync.Once
	extended jsonrpc.Frame
}

// note encodes a notification.
func note(method string, at int64, params any) *frame {
	f, err := jsonrpc.EncodeNotification(method, params, jsonrpc.Member{Name: "emittedAtMs", Value: number(at)})
	if err != nil { // wire types always encode
		return nil
	}
	return &frame{method: method, plain: f}
}

// ask encodes a server request; extended returns its params with the extension's members.
func ask(id, method string, params any, extended func() any) *frame {
	f, err := jsonrpc.EncodeRequest(jsonrpc.StringID(id), method, params)
	if err != nil {
		return nil
	}
	return &frame{method: method, plain: f, id: id, extra: extended()}
}

func number(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }

// encoding is the frame as p gets it.
func (f *frame) encoding(p *peer) jsonrpc.Frame {
	if !p.extended || f.extra == nil && (f.seq == 0 || f.id != "") {
		return f.plain
	}
	f.once.Do(func() {
		if err := f.extend(); err != nil {
			f.extended = f.plain
		}
	})
	return f.extended
}

// extend encodes the frame with what extended connections get on top.
func (f *frame) extend() (err error) {
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		At     json.RawMessage `json:"emittedAtMs"`
	}
	if err := strictjson.Unmarshal(f.plain.Bytes(), &m); err != nil {
		return err
	}
	var params any = m.Params
	if f.extra != nil {
		params = f.extra
	}
	if f.id != "" {
		f.extended, err = jsonrpc.EncodeRequest(jsonrpc.StringID(f.id), m.Method, params)
		return err
	}
	more := []jsonrpc.Member{{Name: "emittedAtMs", Value: m.At}}
	if f.seq > 0 {
		more = append(more, jsonrpc.Member{Name: "seq", Value: strconv.AppendUint(nil, f.seq, 10)})
	}
	f.extended, err = jsonrpc.EncodeNotification(m.Method, params, more...)
	return err
}

// pick is what of frames goes to p.
func pick(p *peer, frames []*frame) []jsonrpc.Frame {
	out := make([]jsonrpc.Frame, 0, len(frames))
	for _, f := range frames {
		if p.takes(f) {
			out = append(out, f.encoding(p))
		}
	}
	return out
}
