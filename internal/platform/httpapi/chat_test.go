package httpapi_test

import (
	"io"
	"strings"
	"testing"
)

func TestChat(t *testing.T) {
	g := newRig(t)
	s := g.me.stream("POST", "/api/chat", say("my-chat", "sim: think hmm ;; say hello there ;; todo [x] a | b"))
	all := s.until(doneMark)
	got := types(all)
	for _, want := range []string{"start ", "start-step", "reasoning-start", "reasoning-delta", "reasoning-end", "text-start", "text-delta", "text-end", "data-todo", "data-usage", "finish [DONE]"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	if s.res.Header.Get("X-Vercel-Ai-Ui-Message-Stream") != "v1" {
		t.Error("the protocol's header is missing")
	}
	var history obj
	g.me.call(200, "GET", "/api/chat-history/my-chat", nil, &history)
	messages := history["messages"].([]any)
	if len(messages) != 2 || messages[0].(obj)["role"] != "user" || messages[1].(obj)["role"] != "assistant" {
		t.Fatalf("history = %v", history)
	}
	res := g.me.call(204, "GET", "/api/chat/my-chat/stream", nil, nil)
	if b, _ := io.ReadAll(res.Body); len(b) != 0 {
		t.Errorf("idle resume has a body: %s", b)
	}
	g.you.call(404, "GET", "/api/chat-history/"+history["id"].(string), nil, nil)
}

// A page that knows a chat does not bring it back when it was deleted meanwhile.
func TestChatThatExists(t *testing.T) {
	g := newRig(t)
	id := g.me.session(nil)
	again := say(id, "sim: say hello")
	again["existing"] = true
	g.me.stream("POST", "/api/chat", again).until(doneMark)
	g.me.call(204, "DELETE", "/sessions/"+id, nil, nil)
	again = say(id, "sim: say once more")
	again["existing"] = true
	g.me.call(404, "POST", "/api/chat", again, nil)
	g.me.call(404, "GET", "/sessions/"+id, nil, nil)
}
