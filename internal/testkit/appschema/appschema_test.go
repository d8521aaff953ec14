package appschema_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/testkit/appschema"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/protocol/app"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	plain    = `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"x","version":"1"}}}`
	extended = `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"x","version":"1"},"capabilities":{"extensions":{"thole":{}}}}}`
)

// What does not fit is reported, and nothing else.
func TestWhatIsReported(t *testing.T) {
	schema := appschema.Installed(t)
	const file = `"id":"i","type":"fileChange","changes":[],"status":"completed","startedAtMs":1,"completedAtMs":2`
	for line, c := range map[string]struct {
		hello   string
		client  bool
		problem string
	}{
		`{"method":"thread/archived","params":{"threadId":"t"}}`:                                                                  {plain, false, ""},
		`{"method":"thread/archived","params":{"threadId":1}}`:                                                                    {plain, false, "want string"},
		`{"method":"thread/archived","params":{}}`:                                                                                {plain, false, "missing property 'threadId'"},
		`{"method":"thread/archived","params":{"threadId":"t","more":1}}`:                                                         {plain, false, "additional properties 'more'"},
		`{"method":"thread/archived","params":{"threadId":"t","thole":1}}`:                                                        {plain, false, "additional properties 'thole'"},
		`{"method":"thread/archived","params":{"threadId":"t","thole":{}}}`:                                                       {extended, false, ""},
		`{"method":"thole/item/updated","params":{}}`:                                                                             {plain, false, "without the extension"},
		`{"method":"thole/step/reset","params":{}}`:                                                                               {extended, false, ""},
		`{"method":"thread/forgotten","params":{}}`:                                                                               {plain, false, "does not know"},
		`{"method":"item/completed","params":{"threadId":"t","turnId":"u","completedAtMs":1,"item":{` + file + `}}}`:              {plain, false, ""},
		`{"method":"item/completed","params":{"threadId":"t","turnId":"u","completedAtMs":1,"item":{` + file + `,"x":1}}}`:        {plain, false, "additional properties 'x'"},
		`{"id":7,"method":"item/fileChange/requestApproval","params":{"threadId":"t","turnId":"u","itemId":"i","startedAtMs":1}}`: {plain, false, ""},
		`{"id":8,"method":"item/fileChange/requestApproval","params":{"threadId":"t","turnId":"u"}}`:                              {plain, false, "missing properties"},
		`{"id":2,"method":"thread/read","params":{"threadId":"t"}}`:                                                               {plain, true, ""},
		`{"id":3,"method":"thread/read","params":{}}`:                                                                             {plain, true, "missing property 'threadId'"},
		`{"id":1,"result":{"userAgent":1}}`:                                                                                       {plain, false, "server initialize does not fit"},
		`{"id":1,"error":{"code":1,"message":"no"}}`:                                                                              {plain, false, ""},
		`[]`: {plain, false, "no JSON"},
	} {
		var problems []string
		r := schema.NewRecorder(func(p string) { problems = append(problems, p) })
		r.See(true, []byte(c.hello))
		r.See(c.client, []byte(line))
		if all := strings.Join(problems, "\n"); (c.problem == "") != (all == "") || !strings.Contains(all, c.problem) {
			t.Errorf("%s: %q, want %q", line, all, c.problem)
		}
	}
}

// A proxy passes everything on and sees it.
func TestProxy(t *testing.T) {
	schema := appschema.Installed(t)
	rig := tholetest.New(t)
	addr := rig.Listen("unix://"+filepath.Join(t.TempDir(), "app.sock"), "")
	r := schema.NewRecorder(func(p string) { t.Error(p) })
	through := appschema.Proxy(t, addr, func() *appschema.Recorder { return r })
	done := make(chan struct{})
	c, err := appclient.Dial(context.Background(), through, appclient.Options{Name: "proxied", Version: "1", Experimental: true, OnNotification: func(n appclient.Notification) {
		if n.Method == "turn/completed" {
			close(done)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v, err := c.StartThread(context.Background(), app.ThreadStartParams{})
	if err == nil {
		_, err = c.StartTurn(context.Background(), app.TurnStartParams{ThreadID: v.Thread.ID, Input: appclient.Text("sim: say seen")})
	}
	if err != nil {
		t.Fatal(err)
	}
	<-done
	lines, _ := r.Lines()
	seen := map[string]bool{}
	for _, l := range lines {
		seen[l.Method] = true
	}
	for _, m := range []string{"initialize", "thread/start", "turn/start", "item/completed", "turn/completed"} {
		if !seen[m] {
			t.Errorf("%s was not seen", m)
		}
	}
}
