package httpapi_test

import (
	"io"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/budget"
	"github.com/tholehq/thole/internal/platform/session"
	"github.com/tholehq/thole/internal/sqldb"
)

// ended runs a turn to its end.
func ended(g *rig, id, text string) {
	g.t.Helper()
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": text}, nil)
	s.until(ofType("run.ended"))
}

// A budget is made once, edited by who has seen it, and holds: a run under a spent one is
// refused and nothing of it happens.
func TestBudgets(t *testing.T) {
	g := newRig(t)
	id := g.me.session(obj{"name": "x"})
	want := obj{"scope": "user", "limit_tokens": 100, "period": "day", "action": "block_new"}
	var b, again, p obj
	made := g.me.with("Idempotency-Key", "k").call(201, "POST", "/budgets", want, &b)
	g.me.with("Idempotency-Key", "k").call(201, "POST", "/budgets", want, &again)
	if b["id"] != again["id"] || made.Header.Get("ETag") != `"1"` || b["soft_pct"] != 80.0 {
		t.Fatalf("made %v and %v, %v", b, again, made.Header)
	}
	g.me.call(409, "POST", "/budgets", want, &p)
	path := "/budgets/" + b["id"].(string)
	for _, bad := range []obj{{"scope": "user"}, {"scope": "user", "limit_tokens": 1, "limit_micros": -1}, {"scope": "planet", "limit_tokens": 1}, {"scope": "turn", "limit_tokens": 1, "period": "day"}} {
		if res := g.me.do("POST", "/budgets", bad); res.StatusCode != 400 && res.StatusCode != 422 {
			t.Errorf("%v: %s", bad, res.Status)
		}
	}
	g.me.with("If-Match", `"7"`).call(412, "PUT", path, obj{"limit_tokens": 200}, nil)
	res := g.me.with("If-Match", `"1"`).call(200, "PUT", path, obj{"limit_tokens": 200, "action": "block_new"}, &b)
	if res.Header.Get("ETag") != `"2"` || b["limit_tokens"] != 200.0 || b["period"] != "day" {
		t.Fatalf("edited to %v, %v", b, res.Header)
	}
	ended(g, id, "sim: usage in=150 out=50 ;; say hi")
	g.me.call(409, "POST", "/sessions/"+id+"/runs", obj{"text": "more"}, &p)
	if p["code"] != "budget_exceeded" || !strings.Contains(p["detail"].(string), "200 tokens") || !strings.Contains(p["hint"].(string), "thole budget") {
		t.Errorf("the problem is %v", p)
	}
	g.me.call(409, "POST", "/sessions/"+id+"/queue", obj{"text": "more", "start": true}, &p)
	var v obj
	g.me.call(200, "GET", "/sessions/"+id+"/snapshot", nil, &v)
	if len(v["queue"].([]any)) != 0 || v["active_run"] != nil {
		t.Errorf("a refusal had an effect: %v", v)
	}
	g.me.call(200, "GET", path, nil, &v)
	state := v["states"].([]any)[0].(obj)
	if state["level"] != "spent" || state["spent"].(obj)["tokens"].(float64) < 200 || len(v["changes"].([]any)) != 2 || v["resets_at"] == nil {
		t.Errorf("the budget is %v", v)
	}
	var others obj
	g.you.call(200, "GET", path, nil, &others)
	if state := others["states"].([]any)[0].(obj); state["spent"].(obj)["tokens"] != 0.0 || others["changes"] != nil {
		t.Errorf("the other user sees %v", others)
	}
	g.you.call(403, "POST", "/budgets", want, nil)
	g.you.call(403, "PUT", path, obj{"limit_tokens": 1}, nil)
	g.you.call(403, "DELETE", path, nil, nil)
	actor, _, err := g.Sessions.NewToken(ctx, thole.LocalUser, session.Grant{Name: "act", Scope: session.ScopeAct})
	if err != nil {
		t.Fatal(err)
	}
	act := (&caller{g: g}).with("Authorization", "Bearer "+actor)
	act.call(200, "GET", "/budgets", nil, &v)
	act.call(403, "DELETE", path, nil, nil)
	g.me.with("If-Match", `"1"`).call(412, "DELETE", path, nil, nil)
	g.me.call(204, "DELETE", path, nil, nil)
	g.me.call(404, "DELETE", path, nil, nil)
	ended(g, id, "sim: say free again")
}

// The sums are those of the rows, in every grouping, as JSON and as CSV.
func TestUsageEqualsTheRows(t *testing.T) {
	g := newRig(t)
	id := g.me.session(obj{"name": "x"})
	ended(g, id, "sim: usage in=150 out=50 ;; say hi")
	s := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	var run obj
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: say begun ;; hang"}, &run)
	s.until(ofType("item.delta"))
	th, err := g.threads.Get(ctx, thole.LocalActor, thole.ThreadID(id))
	if err != nil {
		t.Fatal(err)
	}
	for i, model := range []string{"gpt-5", "=cmd()"} {
		call(g, th, thole.TurnID(run["id"].(string)), model, int64(100*(i+1)))
	}
	count := func(query string) (n int64) {
		t.Helper()
		if err := g.db.View(ctx, func(tx *sqldb.Tx) error { return tx.QueryRow(query).Scan(&n) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	input := count(`select (select sum(input) from gateway_calls where state = 'settled') + (select sum(input) from turn_usage where source = 'cli')`)
	cost := count(`select (select sum(cost_micros) from gateway_calls where cost_micros > 0) + (select sum(cost_micros) from turn_usage where source = 'cli' and cost_micros > 0)`)
	for _, by := range []string{"", "day", "user", "project", "app", "provider", "model", "session", "upstream"} {
		var v obj
		path := "/usage"
		if by != "" {
			path += "?group=" + by
		}
		g.me.call(200, "GET", path, nil, &v)
		total := v["total"].(obj)
		if total["runs"] != 2.0 || total["calls"] != 2.0 || total["input"] != float64(input) || total["cost_micros"] != float64(cost) || total["unpriced_runs"] != 1.0 {
			t.Errorf("by %q: %v, want input %d and cost %d", by, total, input, cost)
		}
		sum := 0.0
		for _, one := range v["groups"].([]any) {
			sum += one.(obj)["input"].(float64)
		}
		if by != "" && sum != float64(input) {
			t.Errorf("the groups by %s add up to %v, want %d", by, sum, input)
		}
	}
	res := g.me.call(200, "GET", "/usage/csv?group=model", nil, nil)
	if res.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Errorf("CSV is %s", res.Header.Get("Content-Type"))
	}
	body := g.me.do("GET", "/usage/csv?group=model", nil)
	text, _ := io.ReadAll(body.Body)
	_ = body.Body.Close()
	if !strings.HasPrefix(string(text), "model,runs,calls,input") || !strings.Contains(string(text), "\n'=cmd(),1,1,200,") || !strings.Contains(string(text), "\ntotal,2,2,") {
		t.Errorf("CSV:\n%s", text)
	}
	g.me.call(400, "GET", "/usage/csv?from=yesterday", nil, nil)
	g.me.call(400, "GET", "/usage/csv?group=colour", nil, nil)
	g.me.call(422, "GET", "/usage?group=colour", nil, nil)
	var v obj
	g.you.call(200, "GET", "/usage", nil, &v)
	if v["total"].(obj)["runs"] != 0.0 {
		t.Errorf("the other user sees %v", v)
	}
	g.me.call(200, "GET", "/usage/prices", nil, &v)
	if v["version"] == "" || len(items(v)) < 10 {
		t.Errorf("prices %v", v)
	}
}

// call makes a model call as the gateway does.
func call(g *rig, th fold.Thread, turn thole.TurnID, model string, input int64) {
	g.t.Helper()
	at := time.Now()
	id, err := g.Ledger.Begin(ctx, budget.Call{Place: budget.Place{Owner: th.Owner, Thread: th.ID, Turn: turn}, Provider: "test", Upstream: "up", Model: model, Input: input, MaxOutput: 10, At: at})
	if err == nil {
		err = g.Ledger.End(ctx, id, budget.Result{Usage: thole.Usage{Input: input, Output: 5}, Known: true, Status: 200, EndedAt: at.Add(time.Second)})
	}
	if err != nil {
		g.t.Fatal(err)
	}
}
