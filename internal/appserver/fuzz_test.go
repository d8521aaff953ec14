package appserver_test

import (
	"testing"

	"github.com/tholehq/thole/internal/tholetest"
)

// FuzzMessages sends anything on an initialized connection: whatever it is, the
// next honest request is answered.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"method":"thread/start","params":{}}`, `{"id":1,"method":"turn/start","params":{"threadId":"x","input":[{"type":"text"}]}}`,
		`{"id":"a/b","result":{"decision":"accept"}}`, `{"id":0,"error":{"code":1,"message":""}}`, `{"method":"initialized"}`, `[]`, `{"id":null}`,
		`{"id":1,"method":"thread/list","params":{"cwd":[1],"limit":-1,"cursor":"zz"}}`, `{"id":2,"method":"thread/resume","params":{"threadId":"01a1dcad-9f64-7cf1-b7d7-ca85211bb200"}}`,
		`{"id":3,"method":"thread/start","params":{"approvalPolicy":{"granular":{}},"sandbox":"read-only","model":"test/x","config":{"a":1}}}`,
		`{"id":4,"method":"thole/thread/attach","params":{"threadId":"","after":18446744073709551615}}`,
	} {
		f.Add([]byte(s))
	}
	rig := tholetest.New(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		w := join(t, rig, full)
		defer w.close()
		if err := w.s.Write(t.Context(), data); err != nil {
			t.Fatal(err)
		}
		w.send(`{"id":"honest","method":"thread/loaded/list","params":{}}`)
		if _, m := w.find(0, "the answer", func(m msg) bool { return string(m.ID) == `"honest"` }); m.Error != nil {
			t.Fatalf("after %q: %v", data, m.Error)
		}
	})
}
