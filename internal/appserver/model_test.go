package appserver_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/tholetest"
	"pgregory.net/rapid"
)

// modelClient is one program that follows a thread over any number of connections.
type modelClient struct {
	w     *wire
	from  uint64   // the cursor it began with
	heard []string // by connections that ended
}

// last is the cursor after what the client has.
func (c *modelClient) last() uint64 {
	all := c.all()
	if len(all) == 0 {
		return c.from
	}
	return seqOf(all[len(all)-1])
}

func (c *modelClient) all() []string {
	if c.w == nil {
		return c.heard
	}
	return append(append([]string(nil), c.heard...), c.w.durable(0)...)
}

// TestRandomClients lets clients come, go, break off, continue after their
// cursors, start, steer, interrupt and answer. Whatever they do, each has every
// durable event of its time once and in order. With THOLE_SOAK there are as many as
// rapid's flag says.
func TestRandomClients(t *testing.T) {
	checks(t, "20")
	rig := tholetest.New(t)
	rapid.Check(t, func(rt *rapid.T) {
		driver := join(t, rig, full)
		defer driver.close()
		id := driver.thread(`{}`)
		var clients []*modelClient
		defer func() {
			for _, c := range clients {
				if c.w != nil {
					c.w.close()
				}
			}
		}()
		attach := func(c *modelClient, after string) {
			c.w = join(t, rig, full)
			r := c.w.ok("thole/thread/attach", `{"threadId":"`+id+`"`+after+`}`)
			if after == "" {
				c.from = uint64(r["seq"].(float64))
			}
		}
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{
			"join", "join", "break", "continue", "continue", "start", "start", "start", "command", "add", "interrupt", "answer", "answer", "name", "queue",
		}), 6, 18).Draw(rt, "steps")
		for i, step := range steps {
			var one *modelClient
			if len(clients) > 0 {
				one = clients[i%len(clients)]
			}
			switch step {
			case "join":
				c := &modelClient{}
				clients = append(clients, c)
				attach(c, "")
			case "break":
				if one != nil && one.w != nil {
					one.w.close()
					one.heard, one.w = one.all(), nil
				}
			case "continue":
				if one != nil && one.w == nil {
					attach(one, fmt.Sprintf(`,"after":%d`, one.last()))
				}
			case "start":
				driver.call("turn/start", input(id, rapid.SampledFrom([]string{
					"sim: say hello", "sim: think hm ;; say one two ;; say three", "sim: run true ;; say ran", "sim: ask Q? | a | b ;; say %tool%", "sim: fail broken",
				}).Draw(rt, "script")))
			case "command":
				driver.ok("thread/shellCommand", `{"threadId":"`+id+`","command":"echo by hand"}`)
			case "add":
				driver.call("thread/queue/add", input(id, "sim: say queued")[:len(input(id, "sim: say queued"))-1]+`,"clientUserMessageId":"q"}`)
			case "queue":
				driver.call("thread/queue/start", `{"threadId":"`+id+`"}`)
			case "interrupt":
				driver.call("turn/interrupt", `{"threadId":"`+id+`","turnId":""}`)
			case "name":
				driver.ok("thread/name/set", fmt.Sprintf(`{"threadId":"%s","name":"n%d"}`, id, i))
			case "answer":
				answerAll(driver, id, rapid.SampledFrom([]string{"allow", "deny", "cancel"}).Draw(rt, "decision"))
			}
		}
		settle(driver, id)
		end := uint64(driver.ok("thole/thread/attach", `{"threadId":"`+id+`","noDeltas":true}`)["seq"].(float64))
		log := join(t, rig, full)
		defer log.close()
		log.ok("thole/thread/attach", `{"threadId":"`+id+`","after":1,"noDeltas":true}`)
		whole := upTo(log, end)
		for n, c := range clients {
			if c.w == nil {
				attach(c, fmt.Sprintf(`,"after":%d`, c.last()))
			}
			upTo(c.w, lastOf(whole))
			var want []string
			for _, line := range whole {
				if seqOf(line) > c.from {
					want = append(want, line)
				}
			}
			if got := c.all(); strings.Join(got, "\n") != strings.Join(want, "\n") {
				rt.Fatalf("client %d from %d heard\n%s\nwant\n%s", n, c.from, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

// checks sets how many cases rapid tries, unless THOLE_SOAK leaves it to its flag.
func checks(t *testing.T, n string) {
	if os.Getenv("THOLE_SOAK") != "" {
		return
	}
	before := flag.Lookup("rapid.checks").Value.String()
	_ = flag.Set("rapid.checks", n)
	t.Cleanup(func() { _ = flag.Set("rapid.checks", before) })
}

func lastOf(lines []string) uint64 {
	if len(lines) == 0 {
		return 0
	}
	return seqOf(lines[len(lines)-1])
}

// upTo waits for the newest notification at or before a cursor; events that send
// nothing leave holes, so the thread's end is probed with one that does.
func upTo(w *wire, end uint64) []string {
	if end > 1 {
		w.find(0, fmt.Sprintf("cursor %d", end), func(m msg) bool { return m.Seq >= end })
	}
	return w.durable(0)
}

// settle answers and interrupts until the thread is idle with an empty queue, and
// then makes one last event that every subscriber receives.
func settle(w *wire, id string) {
	for {
		th := w.ok("thread/read", `{"threadId":"`+id+`"}`)["thread"].(map[string]any)["status"].(map[string]any)
		queue := w.ok("thread/queue/list", `{"threadId":"`+id+`"}`)["data"].([]any)
		if th["type"] != "active" {
			if len(queue) == 0 {
				break
			}
			w.call("thread/queue/start", `{"threadId":"`+id+`"}`)
			continue
		}
		answerAll(w, id, "allow")
	}
	for w.ok("thole/thread/attach", `{"threadId":"`+id+`","noDeltas":true}`)["turn"] != nil {
	}
	w.quiet(id)
	w.ok("thread/name/set", `{"threadId":"`+id+`","name":"the end"}`)
}

// quiet waits until the pipeline has finished with the last turn.
func (w *wire) quiet(id string) {
	turns := w.ok("thread/turns/list", `{"threadId":"`+id+`","limit":1,"itemsView":"notLoaded"}`)["data"].([]any)
	if len(turns) == 0 {
		return
	}
	turn := turns[0].(map[string]any)["id"]
	log := connectAgain(w)
	defer log.close()
	log.ok("thole/thread/attach", `{"threadId":"`+id+`","after":1,"noDeltas":true}`)
	log.find(0, "the end of the pipeline", func(m msg) bool {
		if m.Method != "thole/turn/phase" || m.field("turnId") != turn {
			return m.Method == "turn/completed" && m.field("turn", "id") == turn && m.field("turn", "status") == "interrupted"
		}
		switch m.field("phase") {
		case "succeeded", "failed", "canceled":
			return true
		}
		return false
	})
}

func answerAll(w *wire, id, decision string) {
	var list struct {
		Data []struct {
			ID        string
			Questions []struct{ ID string }
		}
	}
	_, m := w.call("thole/ask/list", `{"threadId":"`+id+`","pendingOnly":true}`)
	_ = json.Unmarshal(m.Result, &list)
	for _, a := range list.Data {
		body := `{"decision":"` + decision + `"}`
		if len(a.Questions) > 0 {
			body = `{"answers":{"` + a.Questions[0].ID + `":["a"]}}`
		}
		w.call("thole/ask/answer", fmt.Sprintf(`{"threadId":"%s","askId":"%s","answer":%s}`, id, a.ID, body))
	}
}
