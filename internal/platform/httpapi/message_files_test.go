package httpapi_test

import (
	"encoding/base64"
	"testing"
)

// A file comes with a message under a safe name, by both ways, and is in the history.
func TestAFileComesWithAMessage(t *testing.T) {
	g := newRig(t)
	url := "data:text/csv;base64," + base64.StdEncoding.EncodeToString([]byte("1,2\n"))
	said := obj{"id": "filed", "messages": []any{obj{"id": "m1", "role": "user", "parts": []any{
		obj{"type": "text", "text": "sim: say read"}, obj{"type": "file", "mediaType": "text/csv", "filename": "../../.git/config", "url": url},
	}}}}
	g.me.stream("POST", "/api/chat", said).until(doneMark)
	var history obj
	g.me.call(200, "GET", "/api/chat-history/filed", nil, &history)
	part := history["messages"].([]any)[0].(obj)["parts"].([]any)[1].(obj)
	if part["type"] != "file" || part["filename"] != "config" || part["mediaType"] != "text/csv" || part["url"] != url {
		t.Errorf("the part of the file is %v", part)
	}
	id := g.me.session(nil)
	var run obj
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"input": []any{obj{"type": "file", "name": "a\x00\n/b c.txt", "url": url}}}, &run)
	if in := run["input"].([]any)[0].(obj); in["name"] != "b c.txt" {
		t.Errorf("the run's file is %v", in)
	}
	for _, bad := range []string{"https://example.org/a.csv", "file:///etc/passwd", "data:text/plain,abc", "data:text/plain;base64,%"} {
		g.me.call(422, "POST", "/sessions/"+g.me.session(nil)+"/runs", obj{"input": []any{obj{"type": "file", "name": "a", "url": bad}}}, nil)
	}
	said["messages"].([]any)[0].(obj)["parts"].([]any)[1].(obj)["url"] = "https://example.org/a.csv"
	g.me.call(501, "POST", "/api/chat", said, nil)
}
