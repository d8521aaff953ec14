package terminal

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		msg  string
		kind byte
		size Size
		bad  bool
	}{
		"hello":           {msg: `{"AuthToken":"","columns":120,"rows":40}`, kind: CmdHello, size: Size{120, 40}},
		"hello, no size":  {msg: `{"AuthToken":""}`, kind: CmdHello, size: DefaultSize},
		"half a size":     {msg: `{"columns":80}`, bad: true},
		"torn hello":      {msg: `{"columns":80`, bad: true},
		"input":           {msg: "0\xff\x00", kind: CmdInput},
		"no input":        {msg: "0", kind: CmdInput},
		"resize":          {msg: `1{"columns":1,"rows":4096}`, kind: CmdResize, size: Size{1, 4096}},
		"too large":       {msg: `1{"columns":4097,"rows":1}`, bad: true},
		"negative":        {msg: `1{"columns":-1,"rows":1}`, bad: true},
		"beyond an int":   {msg: `1{"columns":1e30,"rows":1}`, bad: true},
		"resize, nothing": {msg: "1", bad: true},
		"pause":           {msg: "2", kind: CmdPause},
		"resume":          {msg: "3", kind: CmdResume},
		"unknown":         {msg: "4", bad: true},
		"empty":           {msg: "", bad: true},
	} {
		got, err := Decode([]byte(c.msg))
		if (err != nil) != c.bad || !c.bad && (got.Kind != c.kind || got.Size != c.size) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Whatever a client sends, input is passed on byte for byte, a size that is taken
// fits the kernel's, and a refusal fits a close frame.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"columns":80,"rows":24}`, "0ls\n", `1{"columns":80,"rows":24}`, "2", "3", "0\xff", `1{"columns":65536,"rows":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		c, err := Decode(msg)
		if err != nil {
			if r := Cut(err.Error()); len(r) > MaxReason || !utf8.ValidString(r) {
				t.Fatalf("reason %q", r)
			}
			return
		}
		switch c.Kind {
		case CmdInput:
			if !bytes.Equal(c.Data, msg[1:]) {
				t.Fatalf("input %q of %q", c.Data, msg)
			}
		case CmdHello, CmdResize:
			if int(uint16(c.Size.Columns)) != c.Size.Columns || int(uint16(c.Size.Rows)) != c.Size.Rows || c.Size.check() != nil {
				t.Fatalf("size %+v of %q", c.Size, msg)
			}
		case CmdPause, CmdResume:
		default:
			t.Fatalf("kind %q of %q", c.Kind, msg)
		}
	})
}
