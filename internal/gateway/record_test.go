package gateway

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/testkit/upstream"
)

type fakeRecorder struct {
	bytes.Buffer
	asked bool
	ended []Result
}

func (f *fakeRecorder) Record(c Call, request []byte) Recording {
	if !f.asked {
		return nil
	}
	f.WriteString(c.Upstream + c.Model + string(request))
	return f
}

func (f *fakeRecorder) End(r Result) { f.ended = append(f.ended, r) }

// TestRecord: a record has both bodies and no credential, and is made only where asked for.
func TestRecord(t *testing.T) {
	for _, d := range dialects {
		s := upstream.Start(t, upstream.None)
		r := newRig(t, d, s)
		f := &fakeRecorder{}
		r.c.Recorder = f
		r.post(t)
		r.ledger.results(t)
		if f.Len() != 0 {
			t.Error("recorded although nobody asked")
		}
		f.asked = true
		got := r.post(t)
		r.ledger.results(t)
		if text := f.String(); !strings.Contains(text, bodies[d]) || !strings.Contains(text, got.body) || strings.Contains(text, goodToken) || strings.Contains(text, realKey) {
			t.Errorf("%s", text)
		}
		if len(f.ended) != 1 || !f.ended[0].Known {
			t.Errorf("%+v", f.ended)
		}
	}
}
