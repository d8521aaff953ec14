// Package app compares what thole says on the wire with recorded traffic of the
// real Codex app-server, method by method and notification by notification. The
// recordings are the only standard: none comes from thole.
package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/internal/tholetest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// book is shapes by "result METHOD", "notification METHOD" and "request METHOD".
type book map[string]*shape

func (b book) add(kind, method string, raw json.RawMessage) {
	key := kind + " " + method
	if b[key] == nil {
		b[key] = newShape()
	}
	b[key].add(raw)
}

type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *jsonrpc.Error
}

// transcripts shows every recorded message: conn names its connection, dir who sent
// it.
func transcripts(t *testing.T, see func(file, conn, dir string, m message)) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings")
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			var l struct {
				Conn, Dir string
				Msg       json.RawMessage
			}
			var m message
			if json.Unmarshal(lines.Bytes(), &l) == nil && json.Unmarshal(l.Msg, &m) == nil {
				see(filepath.Base(name), name+l.Conn, l.Dir, m)
			}
		}
		_ = f.Close()
	}
}

// recorded reads the real server's side of all transcripts.
func recorded(t *testing.T) book {
	t.Helper()
	b, asked := book{}, map[string]string{}
	transcripts(t, func(_, conn, dir string, m message) {
		id := conn + string(m.ID)
		switch {
		case dir == "send" && m.Method != "":
			asked[id] = m.Method
		case dir == "recv":
			b.take(asked, id, m)
		}
	})
	return b
}

func (b book) take(asked map[string]string, id string, m message) {
	switch {
	case m.Method != "" && m.ID != nil:
		b.add("request", m.Method, m.Params)
	case m.Method != "":
		b.add("notification", m.Method, m.Params)
	case m.Result != nil:
		b.add("result", asked[id], m.Result)
	}
}

// ours plays a scenario that makes thole say everything it can.
func ours(t *testing.T) book {
	t.Helper()
	rig := tholetest.New(t)
	p := &player{t: t, s: rig.Stream(), book: book{}, asked: map[string]string{}, wake: make(chan struct{}, 1)}
	p.wg.Go(p.read)
	defer func() { _ = p.s.Close("done"); p.wg.Wait() }()
	p.call("initialize", `{"clientInfo":{"name":"golden","version":"1"},"capabilities":{"experimentalApi":true}}`)
	for _, m := range []string{
		"account/read", "model/list", "configRequirements/read", "collaborationMode/list", "hooks/list", "config/read", "skills/list",
		"plugin/list", "account/bedrock/checkGovCloudRequirements", "modelProvider/capabilities/read", "experimentalFeature/list",
		"mcpServerStatus/list", "getAuthStatus", "permissionProfile/list", "thread/loaded/list",
	} {
		p.call(m, `{}`)
	}
	var started struct{ Thread struct{ ID string } }
	_ = json.Unmarshal(p.call("thread/start", `{}`), &started)
	id := started.Thread.ID
	thread := `{"threadId":"` + id + `"}`
	say := func(text string) {
		n := p.count("notification turn/completed")
		raw, _ := json.Marshal(map[string]any{"threadId": id, "input": []any{map[string]any{"type": "text", "text": text}}, "clientUserMessageId": "c"})
		p.call("turn/start", string(raw))
		p.until("the end of the turn", func() bool { return p.count("notification turn/completed") > n })
	}
	say("sim: think hm ;; todo [x] a | [~] b | c ;; usage in=3 out=4 ;; run echo x ;; write f.txt hello ;; ask Which? | a | b ;; note careful ;; say done")
	say("sim: http 500 broken")
	raw, _ := json.Marshal(map[string]any{"threadId": id, "input": []any{map[string]any{"type": "text", "text": "sim: wait 300ms ;; say slow"}}})
	var turn struct{ Turn struct{ ID string } }
	_ = json.Unmarshal(p.call("turn/start", string(raw)), &turn)
	p.call("thread/queue/add", `{"threadId":"`+id+`","input":[{"type":"text","text":"sim: say q"}],"clientUserMessageId":"q"}`)
	p.call("thread/queue/list", thread)
	p.call("turn/steer", `{"threadId":"`+id+`","input":[{"type":"text","text":"sim: say s"}],"expectedTurnId":"`+turn.Turn.ID+`"}`)
	p.call("turn/interrupt", `{"threadId":"`+id+`","turnId":"`+turn.Turn.ID+`"}`)
	p.until("the interrupt", func() bool { return p.count("notification turn/completed") > 2 })
	for method, params := range map[string]string{"thread/shellCommand": `{"threadId":"` + id + `","command":"echo x"}`, "thread/compact/start": thread} {
		n := p.count("notification turn/completed")
		p.call(method, params)
		p.until(method, func() bool { return p.count("notification turn/completed") > n })
	}
	p.call("thread/settings/update", `{"threadId":"`+id+`","approvalPolicy":"never"}`)
	p.call("thread/name/set", `{"threadId":"`+id+`","name":"n"}`)
	p.call("thread/read", `{"threadId":"`+id+`","includeTurns":true}`)
	p.call("thread/list", `{}`)
	p.call("thread/turns/list", `{"threadId":"`+id+`","itemsView":"full"}`)
	p.call("thread/items/list", thread)
	p.call("thread/resume", thread)
	p.call("thread/fork", thread)
	p.call("thread/goal/get", thread)
	p.call("thread/archive", thread)
	p.call("thread/unarchive", thread)
	p.call("thread/unsubscribe", thread)
	p.call("thread/delete", thread)
	p.until("the deletion", func() bool { return p.count("notification thread/deleted") > 0 })
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.book
}

type player struct {
	t  *testing.T
	s  jsonrpc.Stream
	wg sync.WaitGroup

	mu    sync.Mutex
	book  book
	asked map[string]string
	last  map[string]message
	wake  chan struct{}
	next  int
}

func (p *player) read() {
	for {
		data, err := p.s.Read(context.Background())
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(data, &m) != nil {
			continue
		}
		p.mu.Lock()
		p.book.take(p.asked, string(m.ID), m)
		if p.last == nil {
			p.last = map[string]message{}
		}
		if m.Method == "" {
			p.last[string(m.ID)] = m
		}
		p.mu.Unlock()
		switch m.Method {
		case "item/commandExecution/requestApproval", "item/fileChange/requestApproval":
			p.send(`{"id":` + string(m.ID) + `,"result":{"decision":"accept"}}`)
		case "item/tool/requestUserInput":
			p.send(`{"id":` + string(m.ID) + `,"result":{"answers":{"q1":{"answers":["a"]}}}}`)
		}
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

func (p *player) send(raw string) {
	if err := p.s.Write(context.Background(), []byte(raw)); err != nil {
		p.t.Errorf("send: %v", err)
	}
}

func (p *player) until(what string, ok func() bool) {
	p.t.Helper()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-p.wake:
		case <-deadline:
			p.t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (p *player) count(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.book[key] == nil {
		return 0
	}
	return p.book[key].samples
}

func (p *player) call(method, params string) json.RawMessage {
	p.t.Helper()
	p.mu.Lock()
	p.next++
	id := fmt.Sprint(p.next)
	p.asked[id] = method
	p.mu.Unlock()
	p.send(`{"id":` + id + `,"method":"` + method + `","params":` + params + `}`)
	var m message
	p.until("the answer to "+method, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		var ok bool
		m, ok = p.last[id]
		return ok
	})
	if m.Error != nil {
		p.t.Fatalf("%s: %v", method, m.Error)
	}
	return m.Result
}

// allowed are the differences that docs/protocol/app-server.md explains.
var allowed = []string{
	"requestId is string", // ids of asks name thread and ask; the schema allows both
	"<commandExecution>.processId",
	"thread/unarchive: has .thread.environments[]", // recorded empty for a thread that is not loaded
	"<reasoning>.content[]",                        // agents that show what they think
	// The recorded approvals all came with a reason and a rule; both are optional.
	"requestApproval: lacks .proposedExecpolicyAmendment",
	"requestApproval: lacks .reason",
}

func TestLooksLikeTheRecordedServer(t *testing.T) {
	want, got := recorded(t), ours(t)
	compared := 0
	for key, shape := range got {
		if want[key] == nil {
			t.Logf("not recorded: %s", key)
			continue
		}
		compared++
	next:
		for _, d := range differences(want[key], shape) {
			for _, a := range allowed {
				if strings.Contains(key+": "+d, a) {
					continue next
				}
			}
			t.Errorf("%s: %s", key, d)
		}
	}
	if compared < 35 {
		t.Errorf("only %d kinds of message were compared", compared)
	}
}
