package appserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/thread"
	"pgregory.net/rapid"
)

// view is what a client knows of one thread: folded from answers and notifications, in
// the order they came, and from nothing else. It refuses to hear anything twice.
type view struct {
	id     string
	calls  map[string]string // method of each request, by id
	joined bool
	name   int // names are numbers that only grow
	status string
	open   string            // the running turn
	done   map[string]string // text of complete messages
	flight map[string]string // text so far of those in flight
	heard  map[string]bool   // items begun since the last snapshot
	asks   map[string]bool
}

// unknown is a running turn whose id the client was not sent.
const unknown = "?"

func newView(id string) *view { return &view{id: id, calls: map[string]string{}} }

func number(name any) (n int) {
	s, _ := name.(string)
	_, _ = fmt.Sscanf(s, "name %d", &n)
	return n
}

// take folds one message; its error says what a client would show wrong.
func (v *view) take(m msg) error {
	if m.Method == "" {
		return v.answer(v.calls[strings.Trim(string(m.ID), `"`)], m)
	}
	if m.field("threadId") != v.id {
		return nil
	}
	turn, item := m.field("turnId"), ""
	if s, ok := m.field("item", "id").(string); ok {
		item = fmt.Sprint(turn, "/", s)
	}
	if s, ok := m.field("itemId").(string); ok {
		item = fmt.Sprint(turn, "/", s)
	}
	if !v.joined && m.Method != "thread/name/updated" && m.Method != "thread/status/changed" {
		return fmt.Errorf("%s without a subscription", m.Method)
	}
	switch m.Method {
	case "thread/name/updated":
		n := number(m.field("threadName"))
		if n != v.name+1 && v.name > 0 || n <= v.name {
			return fmt.Errorf("name %d after %d", n, v.name)
		}
		v.name = n
	case "thread/status/changed":
		now := fmt.Sprint(m.field("status"))
		if now == v.status {
			return fmt.Errorf("status %s again", now)
		}
		v.status = now
	case "turn/started":
		if v.open != "" {
			return fmt.Errorf("turn %v began in %s", m.field("turn", "id"), v.open)
		}
		v.open = m.field("turn", "id").(string)
	case "turn/completed":
		if v.open != m.field("turn", "id") && v.open != unknown {
			return fmt.Errorf("turn %v ended in %q", m.field("turn", "id"), v.open)
		}
		v.open = ""
	case "item/started":
		if _, known := v.flight[item]; known || v.done[item] != "" {
			return fmt.Errorf("%s began twice", item)
		}
		v.flight[item], v.heard[item] = "", true
	case "item/agentMessage/delta":
		if _, known := v.flight[item]; !known {
			return fmt.Errorf("text of %s, which is not in flight", item)
		}
		v.flight[item] += m.field("delta").(string)
	case "item/completed":
		heard, known := v.flight[item]
		if !known {
			return fmt.Errorf("%s was completed and is not in flight", item)
		}
		text := said(m.field("item").(map[string]any))
		if heard != "" && heard != text {
			return fmt.Errorf("of %s was heard %q, and it is %q", item, heard, text)
		}
		delete(v.flight, item)
		v.done[item] = text
	case "item/commandExecution/requestApproval":
		if v.asks[string(m.ID)] {
			return fmt.Errorf("asked twice: %s", m.ID)
		}
		v.asks[string(m.ID)] = true
	case "serverRequest/resolved":
		rid, _ := json.Marshal(m.field("requestId"))
		if !v.asks[string(rid)] {
			return fmt.Errorf("%s was resolved and not asked", rid)
		}
		delete(v.asks, string(rid))
	}
	return nil
}

// said is what a test compares of an item.
func said(i map[string]any) string {
	if i["type"] == "userMessage" {
		return fmt.Sprint("user: ", i["content"].([]any)[0].(map[string]any)["text"])
	}
	return fmt.Sprint("", i["text"])
}

func (v *view) answer(method string, m msg) error {
	if m.Error != nil {
		return fmt.Errorf("%s: %s", method, m.Error.Message)
	}
	switch method {
	case "thread/resume":
		var r struct {
			Thread struct {
				Name   string
				Status map[string]any
				Turns  []struct {
					ID, Status string
					Items      []map[string]any
				}
			}
		}
		if err := json.Unmarshal(m.Result, &r); err != nil {
			return err
		}
		if n := number(r.Thread.Name); n < v.name {
			return fmt.Errorf("a snapshot with name %d after name %d", n, v.name)
		}
		*v = view{
			id: v.id, calls: v.calls, joined: true, name: number(r.Thread.Name), status: fmt.Sprint(any(r.Thread.Status)),
			done: map[string]string{}, flight: map[string]string{}, heard: map[string]bool{}, asks: map[string]bool{},
		}
		if strings.Contains(v.status, "active") {
			v.open = unknown // it is among the turns, if they were asked for
		}
		for _, t := range r.Thread.Turns {
			if t.Status == "inProgress" {
				v.open = t.ID
			}
			for _, i := range t.Items {
				v.done[t.ID+"/"+i["id"].(string)] = said(i)
			}
		}
	case "thread/unsubscribe":
		*v = view{id: v.id, calls: v.calls, name: v.name, status: v.status}
	case "thread/items/list":
		if !v.joined {
			return nil
		}
		var r struct {
			Data []struct {
				TurnID string
				Item   map[string]any
			}
		}
		if err := json.Unmarshal(m.Result, &r); err != nil {
			return err
		}
		for _, d := range r.Data {
			item := d.TurnID + "/" + d.Item["id"].(string)
			if v.heard[item] {
				return fmt.Errorf("%s is in the list and began", item)
			}
			v.done[item] = said(d.Item)
		}
	}
	return nil
}

// TestViewsAreExact lets events of a thread and clients that resume, resume again and
// unsubscribe come in any order, without waiting for each other. What each client
// is sent adds up to the thread, and nothing comes twice.
func TestViewsAreExact(t *testing.T) {
	checks(t, "30")
	b := newBare(t, nil)
	rapid.Check(t, func(rt *rapid.T) {
		driver := b.join()
		defer driver.close()
		id := driver.thread(`{}`)
		type client struct {
			*wire
			sent   int
			joined bool
			list   bool
			calls  map[string]string
		}
		var clients []*client
		for range 3 {
			clients = append(clients, &client{wire: b.join(), calls: map[string]string{}})
		}
		defer func() {
			for _, c := range clients {
				c.close()
			}
		}()
		ask := func(c *client, method, params string) {
			c.sent++
			key := fmt.Sprintf("q%d", c.sent)
			c.calls[key] = method
			c.send(`{"id":"` + key + `","method":"` + method + `","params":` + params + `}`)
		}
		names, items := 0, 0
		var ref thread.TurnRef
		texts := map[string]string{} // in flight
		var asks []string
		rename := func() {
			names++
			driver.ok("thread/name/set", ofThread(id, fmt.Sprintf(`"name":"name %d"`, names)))
		}
		finish := func() {
			for _, a := range asks {
				driver.ok("thole/ask/answer", ofThread(id, `"askId":"`+a+`"`, `"answer":{"decision":"allow"}`))
			}
			for _, item := range slices.Sorted(maps.Keys(texts)) {
				b.report(ref, says(item, texts[item]))
			}
			b.report(ref, ends())
			clear(texts)
			asks, ref = nil, thread.TurnRef{}
		}
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{
			"resume", "resume", "resume", "again", "list", "unsubscribe", "turn", "turn", "item", "item", "grow", "grow", "grow", "complete", "ask", "answer", "end", "name", "wait",
		}), 10, 40).Draw(rt, "steps")
		for i, step := range steps {
			c := clients[i%len(clients)]
			busy := ref.Turn != ""
			some := slices.Sorted(maps.Keys(texts))
			switch {
			case step == "resume":
				ask(c, "thread/resume", ofThread(id))
				c.joined, c.list = true, false
			case step == "again":
				ask(c, "thread/resume", ofThread(id))
				ask(c, "thread/resume", ofThread(id))
				c.joined, c.list = true, false
			case step == "list" && !c.list: // as the TUI does: the snapshot without turns, then pages of items
				ask(c, "thread/resume", ofThread(id, `"excludeTurns":true`))
				key := fmt.Sprintf("q%d", c.sent)
				_, m := c.find(0, "resume", func(m msg) bool { return string(m.ID) == `"`+key+`"` })
				var r struct{ ItemsBackwardsCursor string }
				if err := json.Unmarshal(m.Result, &r); err != nil {
					rt.Fatal(err)
				}
				if len(some) > 0 && busy {
					b.report(ref, says(some[0], texts[some[0]]))
					delete(texts, some[0])
				}
				ask(c, "thread/items/list", ofThread(id, `"sortDirection":"desc"`, `"limit":1000`, `"cursor":"`+r.ItemsBackwardsCursor+`"`))
				c.joined, c.list = true, true
			case step == "unsubscribe" && c.joined:
				ask(c, "thread/unsubscribe", ofThread(id))
				c.joined, c.list = false, false
			case step == "turn" && !busy:
				ref = b.turn(id, "question")
				b.report(ref, begins("first"))
				texts["first"] = ""
			case step == "item" && busy:
				items++
				item := fmt.Sprintf("i%d", items)
				texts[item] = ""
				b.report(ref, begins(item))
			case step == "grow" && len(some) > 0:
				item := some[i%len(some)]
				more := fmt.Sprintf(" %d", i)
				b.report(ref, grows(item, more, len(texts[item])))
				texts[item] += more
			case step == "complete" && len(some) > 0:
				item := some[i%len(some)]
				b.report(ref, says(item, texts[item]))
				delete(texts, item)
			case step == "ask" && busy:
				a := fmt.Sprintf("ask%d", i)
				b.report(ref, asked(a))
				asks = append(asks, a)
			case step == "answer" && len(asks) > 0:
				driver.ok("thole/ask/answer", ofThread(id, `"askId":"`+asks[0]+`"`, `"answer":{"decision":"allow"}`))
				asks = asks[1:]
			case step == "end" && busy:
				finish()
			case step == "name":
				rename()
			case step == "wait" && c.sent > 0:
				key := fmt.Sprintf(`"q%d"`, c.sent)
				c.find(0, "an answer", func(m msg) bool { return string(m.ID) == key })
			}
		}
		if rapid.Bool().Draw(rt, "finish") && ref.Turn != "" {
			finish()
		}
		for _, c := range clients {
			if c.sent > 0 {
				key := fmt.Sprintf(`"q%d"`, c.sent)
				c.find(0, "the last answer", func(m msg) bool { return string(m.ID) == key })
			}
		}
		rename() // everyone hears of it, subscribed or not, and of everything before it
		th, err := b.threads.Get(context.Background(), thole.LocalActor, thole.ThreadID(id))
		if err != nil {
			rt.Fatal(err)
		}
		for n, c := range clients {
			last := fmt.Sprintf("name %d", names)
			c.find(0, last, func(m msg) bool { return m.Method == "thread/name/updated" && m.field("threadName") == last })
			v := newView(id)
			v.calls = c.calls
			for i, m := range c.since(0) {
				if err := v.take(m); err != nil {
					rt.Fatalf("client %d: message %d of %v: %v", n, i, c.methods(0), err)
				}
			}
			if v.name != names {
				rt.Fatalf("client %d has name %d of %d", n, v.name, names)
			}
			if !v.joined {
				continue
			}
			var have, want []string
			for item, text := range v.done {
				have = append(have, item+" "+text)
			}
			for item, text := range v.flight {
				have = append(have, item+" … "+text)
			}
			for _, r := range b.items(id) {
				item := string(r.Turn) + "/" + string(r.Item.ID)
				switch {
				case r.Open:
					want = append(want, item+" … "+r.Item.Text)
				case len(r.Item.Content) > 0:
					want = append(want, item+" user: "+r.Item.Content[0].Text)
				default:
					want = append(want, item+" "+r.Item.Text)
				}
			}
			slices.Sort(have)
			slices.Sort(want)
			if !slices.Equal(have, want) {
				rt.Fatalf("client %d of %v has\n%s\nwant\n%s", n, c.methods(0), strings.Join(have, "\n"), strings.Join(want, "\n"))
			}
			if v.open != string(th.Open) && v.open != unknown || len(v.asks) != len(asks) || strings.Contains(v.status, "active") != th.Status.Active {
				rt.Fatalf("client %d: turn %q, %d asks, status %s; want %q, %d, %+v", n, v.open, len(v.asks), v.status, th.Open, len(asks), th.Status)
			}
		}
	})
}
