package appserver

import (
	"encoding/json"
	"strconv"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/strictjson"
)

// frame is one encoded message to clients, shared by all that get it.
type frame struct {
	method       string
	experimental bool
	extension    bool
	request      bool
	plain        jsonrpc.Frame
	// thread and birth are set on what every connection hears.
	thread thole.ThreadID
	birth  bool

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

// ask encodes a server request.
func ask(id, method string, params any) *frame {
	f, err := jsonrpc.EncodeRequest(jsonrpc.StringID(id), method, params)
	if err != nil {
		return nil
	}
	return &frame{method: method, plain: f, request: true}
}

func number(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }

// encoding is the frame as p gets it.
func (f *frame) encoding(p *peer) jsonrpc.Frame {
	if f.seq == 0 || !p.extended || f.request {
		return f.plain
	}
	f.once.Do(func() {
		b := f.plain.Bytes()
		var m struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
			At     json.RawMessage `json:"emittedAtMs"`
		}
		if strictjson.Unmarshal(b, &m) != nil {
			f.extended = f.plain
			return
		}
		f.extended, _ = jsonrpc.EncodeNotification(m.Method, m.Params,
			jsonrpc.Member{Name: "emittedAtMs", Value: m.At}, jsonrpc.Member{Name: "seq", Value: strconv.AppendUint(nil, f.seq, 10)})
	})
	return f.extended
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
