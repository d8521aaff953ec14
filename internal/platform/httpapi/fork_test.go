package httpapi_test

import (
	"strings"
	"testing"
)

// answered runs a message and returns its run's id.
func (c *caller) answered(session, text string) string {
	c.g.t.Helper()
	s := c.stream("GET", "/sessions/"+session+"/events", nil)
	var run obj
	c.call(201, "POST", "/sessions/"+session+"/runs", obj{"text": text}, &run)
	s.until(ofType("run.ended"))
	return run["id"].(string)
}

func texts(v any) string {
	var out []string
	for _, m := range v.([]any) {
		for _, p := range m.(obj)["parts"].([]any) {
			if p.(obj)["type"] == "text" {
				out = append(out, p.(obj)["text"].(string))
			}
		}
	}
	return strings.Join(out, " | ")
}

func (c *caller) chat(session string) string {
	c.g.t.Helper()
	var v obj
	c.call(200, "GET", "/sessions/"+session+"/messages", nil, &v)
	return texts(v["items"])
}

// TestForkBefore: a fork goes on before any run, with another message or the same
// one, and the session stays as it was.
func TestForkBefore(t *testing.T) {
	g := newRig(t)
	id := g.me.session(obj{"name": "first", "execution_profile": "full"})
	one := g.me.answered(id, "sim: say one %turns%")
	two := g.me.answered(id, "sim: say two %turns%")
	three := g.me.answered(id, "sim: say three %turns%")
	before := g.me.chat(id)
	fork := func(body obj) obj {
		t.Helper()
		var v obj
		g.me.call(201, "POST", "/sessions/"+id+"/fork", body, &v)
		return v
	}
	v := fork(obj{"before_run_id": two, "name": "edited"})
	if v["name"] != "edited" || v["forked_from"] != id || v["runs"] != 1.0 || g.me.chat(v["id"].(string)) != "sim: say one %turns% | one 1" {
		t.Errorf("before the second: %v, %s", v, g.me.chat(v["id"].(string)))
	}
	edited := v["id"].(string)
	g.me.answered(edited, "sim: say other %turns%")
	if got := g.me.chat(edited); !strings.HasSuffix(got, "other 2") {
		t.Errorf("the edited one went on with %s", got)
	}
	again := fork(obj{"before_run_id": three, "run": obj{}})
	s := g.me.stream("GET", "/sessions/"+again["id"].(string)+"/events?after=0", nil)
	s.until(ofType("run.ended"))
	if got := g.me.chat(again["id"].(string)); got != before {
		t.Errorf("the same message again: %s, want %s", got, before)
	}
	first := fork(obj{"before_run_id": one, "run": obj{"text": "sim: say new %turns%"}})
	s = g.me.stream("GET", "/sessions/"+first["id"].(string)+"/events?after=0", nil)
	s.until(ofType("run.ended"))
	if got := g.me.chat(first["id"].(string)); got != "sim: say new %turns% | new 1" {
		t.Errorf("before the first: %s", got)
	}
	if got := g.me.chat(id); got != before {
		t.Errorf("the session itself changed: %s", got)
	}
	// A fork of a fork at a run that it has from its parent.
	var deep obj
	g.me.call(201, "POST", "/sessions/"+edited+"/fork", obj{"up_to_run_id": one}, &deep)
	g.me.answered(deep["id"].(string), "sim: say deep %turns%")
	if got := g.me.chat(deep["id"].(string)); !strings.HasSuffix(got, "deep 2") {
		t.Errorf("a fork of a fork: %s", got)
	}
	// A fork of a fork in which nothing was said yet.
	var still, far obj
	g.me.call(201, "POST", "/sessions/"+id+"/fork", obj{"up_to_run_id": two}, &still)
	g.me.call(201, "POST", "/sessions/"+still["id"].(string)+"/fork", obj{}, &far)
	g.me.answered(far["id"].(string), "sim: say far %turns%")
	if got := g.me.chat(far["id"].(string)); !strings.HasSuffix(got, "far 3") {
		t.Errorf("a fork of a fork that was silent: %s", got)
	}
	g.me.call(422, "POST", "/sessions/"+id+"/fork", obj{"before_run_id": one, "up_to_run_id": one}, nil)
	g.me.call(404, "POST", "/sessions/"+id+"/fork", obj{"before_run_id": id}, nil)
	var a, b obj
	keyed := g.me.with("Idempotency-Key", "f1")
	keyed.call(201, "POST", "/sessions/"+id+"/fork", obj{"before_run_id": two, "run": obj{}}, &a)
	keyed.call(201, "POST", "/sessions/"+id+"/fork", obj{"before_run_id": two, "run": obj{}}, &b)
	if a["id"] != b["id"] || b["runs"] != 2.0 {
		t.Errorf("a repeated fork: %v, %v", a, b)
	}
}

// TestAnsweredAgain: the official client's regenerate and edit fork the chat, and
// the client goes on in the fork with the id that it has.
func TestAnsweredAgain(t *testing.T) {
	g := newRig(t)
	post := func(body obj) []sseEvent {
		t.Helper()
		body["provider"], body["executionProfile"] = "test", "full"
		return g.me.stream("POST", "/api/chat", body).until(doneMark)
	}
	user := func(id, text string) obj {
		return obj{"id": id, "role": "user", "parts": []obj{{"type": "text", "text": text}}}
	}
	answer := func(all []sseEvent) obj {
		for _, e := range all {
			if e.data["type"] == "start" {
				return obj{"id": e.data["messageId"], "role": "assistant", "metadata": e.data["messageMetadata"], "parts": []obj{}}
			}
		}
		t.Fatal("no start")
		return nil
	}
	sessionOf := func(m obj) string { return m["metadata"].(obj)["session_id"].(string) }
	u1, u2 := user("u1", "sim: say one %turns%"), user("u2", "sim: say two %turns%")
	a1 := answer(post(obj{"id": "c", "messages": []obj{u1}}))
	a2 := answer(post(obj{"id": "c", "messages": []obj{u1, a1, u2}}))
	base := sessionOf(a1)
	before := g.me.chat(base)
	// regenerate() of the last answer.
	r2 := answer(post(obj{"id": "c", "trigger": "regenerate-message", "messages": []obj{u1, a1, u2}}))
	if sessionOf(r2) == base || g.me.chat(sessionOf(r2)) != before || g.me.chat(base) != before {
		t.Fatalf("again: %s in %s", g.me.chat(sessionOf(r2)), sessionOf(r2))
	}
	// The next message goes on there.
	u3 := user("u3", "sim: say three %turns%")
	a3 := answer(post(obj{"id": "c", "messages": []obj{u1, a1, u2, r2, u3}}))
	if sessionOf(a3) != sessionOf(r2) || !strings.HasSuffix(g.me.chat(sessionOf(a3)), "three 3") || g.me.chat(base) != before {
		t.Fatalf("went on: %s", g.me.chat(sessionOf(a3)))
	}
	// An earlier message is edited: sendMessage({text, messageId}).
	e1 := user("u1", "sim: say edited %turns%")
	x1 := answer(post(obj{"id": "c", "trigger": "submit-message", "messageId": "u1", "messages": []obj{e1}}))
	if got := g.me.chat(sessionOf(x1)); got != "sim: say edited %turns% | edited 1" {
		t.Fatalf("edited: %s", got)
	}
	// An answer in the middle is made again, in the fork.
	m2 := answer(post(obj{"id": "c", "trigger": "regenerate-message", "messageId": r2["id"], "messages": []obj{u1, a1, u2}}))
	if got := g.me.chat(sessionOf(m2)); got != before {
		t.Fatalf("in the middle: %s", got)
	}
	// A message that never arrived is new, whatever the client calls it.
	n := answer(post(obj{"id": "c", "trigger": "regenerate-message", "messages": []obj{u1, a1, u2, a2, user("lost", "sim: say late")}}))
	if sessionOf(n) != base || !strings.HasSuffix(g.me.chat(base), "late") {
		t.Fatalf("a lost one: %s", g.me.chat(sessionOf(n)))
	}
	g.me.call(409, "POST", "/api/chat", obj{"id": "c", "trigger": "regenerate-message", "messageId": "nobody", "messages": []obj{u1}}, nil)
	g.me.call(422, "POST", "/api/chat", obj{"id": "c", "trigger": "regenerate-message", "messages": []obj{{"role": "user", "parts": []obj{{"type": "text", "text": "x"}}}}}, nil)
}

// TestDeletedIDs: no way leads back to a session that was deleted.
func TestDeletedIDs(t *testing.T) {
	g := newRig(t)
	id := g.me.session(nil)
	keyed := g.me.with("Idempotency-Key", "k1")
	var made, forked obj
	keyed.call(201, "POST", "/sessions", obj{"provider": "test"}, &made)
	keyed.call(201, "POST", "/sessions/"+id+"/fork", obj{}, &forked)
	g.me.stream("POST", "/api/chat", say("words", "sim: say hi")).until(doneMark)
	var words obj
	g.me.call(200, "GET", "/api/chat-history/words", nil, &words)
	for _, it := range []any{made["id"], forked["id"], words["id"]} {
		g.me.call(204, "DELETE", "/sessions/"+it.(string), nil, nil)
	}
	gone := func(c *caller, method, path string, body any) {
		t.Helper()
		if res := c.call(410, method, path, body, nil); res.Header.Get("X-Thole-Code") != "gone" && !strings.Contains(res.Header.Get("Content-Type"), "problem") {
			t.Errorf("%s %s: %v", method, path, res.Header)
		}
	}
	gone(keyed, "POST", "/sessions", obj{"provider": "test"})
	gone(keyed, "POST", "/sessions/"+id+"/fork", obj{})
	gone(g.me, "POST", "/api/chat", say("words", "sim: say again"))
	gone(g.me, "GET", "/api/chat/words/stream", nil)
	gone(g.me, "POST", "/api/chat-history", obj{"id": "words", "provider": "test"})
	g.me.call(204, "DELETE", "/sessions/"+id, nil, nil)
	gone(g.me, "POST", "/sessions", obj{"id": id, "provider": "test"})
	gone(g.me, "POST", "/api/chat", say(id, "sim: say again"))
	g.me.call(404, "GET", "/sessions/"+id, nil, nil)
}
