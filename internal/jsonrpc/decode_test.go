package jsonrpc_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/jsonrpc"
)

func TestDecodeFaults(t *testing.T) {
	nest := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	many := func(n int) string { return "[" + strings.Repeat("1,", n-1) + "1]" }
	wide := func(n int, last string) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range n {
			fmt.Fprintf(&b, `"k%d":1,`, i)
		}
		return b.String() + last + "}"
	}
	in := func(params string) string { return `{"method":"m","params":` + params + `}` }
	lim := jsonrpc.Limits{Bytes: 4 << 20}
	for _, tc := range []struct {
		msg   string
		fault jsonrpc.Fault
	}{
		{in(nest(127)), ""},
		{in(nest(128)), jsonrpc.FaultTooDeep},
		{in(nest(1 << 20)), jsonrpc.FaultTooDeep},
		{in(many(256<<10 - 3)), ""},
		{in(many(256<<10 - 2)), jsonrpc.FaultTooMany},
		{in(`"` + strings.Repeat("x", 4<<20) + `"`), jsonrpc.FaultTooLarge},
		{in(`{"a":1,"a":2}`), jsonrpc.FaultDuplicate},
		{in(`{"a":1,"\u0061":2}`), jsonrpc.FaultDuplicate},
		{in(`[{"a":{"b":1,"c":{},"b":2}}]`), jsonrpc.FaultDuplicate},
		{in(`[{"a":1},{"a":1,"b":{"a":1}}]`), ""},
		{in(wide(1000, `"k1000":1`)), ""},
		{in(wide(1000, `"k999":1`)), jsonrpc.FaultDuplicate},
		{in(wide(17, `"k0":1`)), jsonrpc.FaultDuplicate},
		{`{"method":"m"} {"method":"m"}`, jsonrpc.FaultSyntax},
		{`{"method":"m",}`, jsonrpc.FaultSyntax},
		{in(`01`), jsonrpc.FaultSyntax},
		{in(`1.`), jsonrpc.FaultSyntax},
		{in(`-`), jsonrpc.FaultSyntax},
		{in(`1e+`), jsonrpc.FaultSyntax},
		{in(`-0.5E-7`), ""},
		{in(`"\u12g4"`), jsonrpc.FaultSyntax},
		{in(`"\x"`), jsonrpc.FaultSyntax},
		{in("\"a\tb\""), jsonrpc.FaultSyntax},
		{in("\"01234567\x1f\""), jsonrpc.FaultSyntax},
		{in("\"0123\x1f5678901234567\""), jsonrpc.FaultSyntax},
		{in(`nul`), jsonrpc.FaultSyntax},
		{in(`"`), jsonrpc.FaultSyntax},
		{in("\"\xc3\x28\""), jsonrpc.FaultSyntax},
		{`"text"`, jsonrpc.FaultShape},
		{`{}`, jsonrpc.FaultShape},
		{`{"id":1,"error":{"code":1}}`, jsonrpc.FaultShape},
		{`{"id":1,"error":{"code":1.5,"message":""}}`, jsonrpc.FaultShape},
		{`{"result":1}`, jsonrpc.FaultShape},
		{`{"id":{},"result":1}`, jsonrpc.FaultShape},
	} {
		_, err := jsonrpc.Decode([]byte(tc.msg), lim)
		var bad *jsonrpc.DecodeError
		switch {
		case tc.fault == "" && err != nil:
			t.Errorf("%.60s: %v", tc.msg, err)
		case tc.fault != "" && (!errors.As(err, &bad) || bad.Fault != tc.fault):
			t.Errorf("%.60s: %v, want %s", tc.msg, err, tc.fault)
		}
	}
	if _, err := jsonrpc.Decode([]byte(in(`{"a":1,"a":2}`)), jsonrpc.Limits{LastKeyWins: true}); err != nil {
		t.Error(err)
	}
	if _, err := jsonrpc.Decode([]byte(`{"id":1,"id":2,"method":"m"}`), jsonrpc.Limits{LastKeyWins: true}); err == nil {
		t.Error("an envelope with two ids passed")
	}
}

func TestDecodeKinds(t *testing.T) {
	for msg, kind := range map[string]jsonrpc.Kind{
		`{"id":1,"method":"m"}`:                              jsonrpc.KindRequest,
		`{"method":"m","result":1}`:                          jsonrpc.KindNotification,
		`{"id":1,"result":null}`:                             jsonrpc.KindResponse,
		`{"id":1,"result":1,"error":null}`:                   jsonrpc.KindResponse,
		` {"error":{"code":-1,"message":"x"},"id":"1"} `:     jsonrpc.KindError,
		`{"jsonrpc":"2.0","method":"\u006d","other":[1,{}]}`: jsonrpc.KindNotification,
	} {
		m, err := jsonrpc.Decode([]byte(msg), jsonrpc.Limits{})
		if err != nil || m.Kind != kind || m.Method != "" && m.Method != "m" {
			t.Errorf("%s: %+v, %v", msg, m, err)
		}
	}
}

// FuzzDecode holds the scanner to encoding/json: it never accepts what is not
// JSON, refuses valid JSON only for a limit or the shape, and its slices are the
// members that encoding/json finds.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"method":"m","params":{"a":[1,2.5e3,"\u00e9\\",true,null]}}`,
		`{"id":"x","result":{"a":{"b":{}}}}`, `{"error":{"code":-1,"message":"x","data":[]},"id":-1}`,
		`{"method":"n","params":[],"emittedAtMs":1}`, `{"a":1,"a":2}`, "{\"method\":\"\xff\"}", `[[[[`, `{"id":1e2}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := jsonrpc.Decode(data, jsonrpc.Limits{})
		if err != nil {
			var bad *jsonrpc.DecodeError
			if !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > len(data) {
				t.Fatalf("odd error %#v", err)
			}
			if bad.Fault == jsonrpc.FaultSyntax && json.Valid(data) && strings.ToValidUTF8(string(data), "") == string(data) {
				t.Fatalf("refused valid JSON %q: %v", data, err)
			}
			return
		}
		var ref map[string]json.RawMessage
		if err := json.Unmarshal(data, &ref); err != nil {
			t.Fatalf("accepted %q: %v", data, err)
		}
		for name, got := range map[string]json.RawMessage{"params": m.Params, "trace": m.Trace, "result": m.Result} {
			if got != nil && string(got) != string(ref[name]) {
				t.Fatalf("%s is %q, want %q", name, got, ref[name])
			}
		}
		if !m.ID.IsZero() {
			b, _ := json.Marshal(m.ID)
			var a, z any
			if json.Unmarshal(b, &a) != nil || json.Unmarshal(ref["id"], &z) != nil || fmt.Sprintf("%T%v", a, a) != fmt.Sprintf("%T%v", z, z) {
				t.Fatalf("id %s became %s", ref["id"], b)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for name, msg := range map[string]string{
		"small": `{"id":12,"method":"process/write","params":{"processId":"p-1","writeId":7,"chunk":"aGVsbG8="}}`,
		"64KiB": `{"method":"process/output","params":{"chunk":"` + strings.Repeat("QUJD", 16<<10) + `"}}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(msg)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsonrpc.Decode([]byte(msg), jsonrpc.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Half a surrogate pair is no text where whole characters are asked for.
func TestHalvesOfSurrogatePairs(t *testing.T) {
	for text, whole := range map[string]bool{
		`\ud83d\ude00`: true, `\uD83D\uDE00`: true, `\ud7ff\ue000`: true, `\\ud800`: true, `\udbff\udfff`: true, `\ud800\udc00x`: true, `\u0d80`: true,
		`\ud800`: false, `\udc00`: false, `\ud800x`: false, `\ud800\ud800`: false, `\udc00\ud800`: false, `\ud800\n`: false, `\ud800\udc0g`: false, `\ud800\ue000`: false,
		`\ud800\\udc00`: false, `\ud800\udc0`: false,
	} {
		for _, message := range []string{`{"id":"` + text + `","method":"m"}`, `{"id":1,"method":"` + text + `"}`, `{"id":1,"method":"m","params":[{"` + text + `":"` + text + `"}]}`} {
			if _, err := jsonrpc.Decode([]byte(message), jsonrpc.Limits{WholeRunes: true}); (err == nil) != whole {
				t.Errorf("%s: %v", message, err)
			}
		}
		if _, err := jsonrpc.Decode([]byte(`{"id":1,"method":"`+text+`"}`), jsonrpc.Limits{}); err != nil && text != `\ud800\udc0g` && text != `\ud800\udc0` {
			t.Errorf("%s: %v", text, err)
		}
	}
}
