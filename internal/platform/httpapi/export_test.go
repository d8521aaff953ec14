package httpapi_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// exportOf is a session's transcript.
func (c *caller) exportOf(id, format string) string {
	c.g.t.Helper()
	res := c.do("GET", "/sessions/"+id+"/export?format="+format, nil)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Disposition"), `attachment; filename="`) {
		c.g.t.Fatalf("export: %s %v %v: %s", res.Status, res.Header, err, b)
	}
	return string(b)
}

// A transcript has everything that a person sees of a session, and nothing of a message can
// take what follows into itself.
func TestExport(t *testing.T) {
	g := newRig(t)
	id := g.me.session(nil)
	events := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "# Mend it\nsim: think because ;; say ```go\\nfunc open( ;; todo [x] first | [~] second ;; run printf 'out``````put' ;; write notes.txt new text ;; ask Which one? | red | blue ;; usage in=10 out=7 ;; say ready"}, nil)
	for {
		e := events.until(func(e sseEvent) bool {
			return e.data["type"] == "human_loop.requested" || e.data["type"] == "run.ended"
		})
		last := e[len(e)-1]
		if last.data["type"] == "run.ended" {
			break
		}
		q := last.data["data"].(obj)["question"].(obj)
		reply := obj{"decision": "allow"}
		if q["kind"] == "input" {
			reply = obj{"answers": obj{q["questions"].([]any)[0].(obj)["id"].(string): []string{"blue"}}}
		}
		g.me.call(200, "POST", "/runs/"+last.data["run_id"].(string)+"/human-loop/"+q["question_id"].(string)+"/reply", reply, nil)
	}
	md := g.me.exportOf(id, "markdown")
	at := 0
	for _, want := range []string{"# Mend it", "tokens in", "- [x] first", "- [ ] second (doing)", "## Turn 1", "### User", "# Mend it", "### Reasoning", "because",
		"### Agent\n\n```go\nfunc open(\n```\n", "### Command", "printf 'out``````put'", "```````text\nout``````put\n```````\n", "exit code 0", "### Question (command)", "**Answer:** allow",
		"### Changed files", "`notes.txt`: add", "new text", "### Question (input)", "Which one?", "- blue", "**Answer:** blue", "ready", "Turn 1: completed"} {
		i := strings.Index(md[at:], want)
		if i < 0 {
			t.Fatalf("no %q after %d bytes of\n%s", want, at, md)
		}
		at += i
	}
	var doc struct {
		Format  string `json:"format"`
		Session obj    `json:"session"`
		Todos   []obj  `json:"todos"`
		Runs    []struct {
			Run       obj   `json:"run"`
			Items     []obj `json:"items"`
			Questions []obj `json:"questions"`
		} `json:"runs"`
	}
	if err := json.Unmarshal([]byte(g.me.exportOf(id, "json")), &doc); err != nil {
		t.Fatal(err)
	}
	kinds := map[any]int{}
	for _, it := range doc.Runs[0].Items {
		kinds[it["kind"]]++
	}
	if doc.Format != "thole.transcript/1" || doc.Session["title"] != "Mend it" || len(doc.Todos) != 2 || len(doc.Runs) != 1 || len(doc.Runs[0].Questions) < 2 ||
		kinds["user_message"] != 1 || kinds["reasoning"] != 1 || kinds["command"] != 1 || kinds["file_change"] != 1 || kinds["message"] < 2 || doc.Runs[0].Run["usage"].(obj)["output"] != 7.0 {
		t.Errorf("document: %+v, kinds %v", doc, kinds)
	}
	g.me.call(400, "GET", "/sessions/"+id+"/export?format=exe", nil, nil)
	g.you.call(404, "GET", "/sessions/"+id+"/export", nil, nil)
}

// Of a long output the item shows the ends, its own address all of it.
func TestOutputOfACommand(t *testing.T) {
	g := newRig(t)
	id := g.me.session(obj{"execution_profile": "full"})
	events := g.me.stream("GET", "/sessions/"+id+"/events", nil)
	g.me.call(201, "POST", "/sessions/"+id+"/runs", obj{"text": "sim: run seq 1 40000"}, nil)
	events.until(ofType("run.ended"))
	var items obj
	g.me.call(200, "GET", "/sessions/"+id+"/tool-executions", nil, &items)
	item := items["items"].([]any)[0].(obj)["id"].(string)
	text := ""
	for path := "/sessions/" + id + "/items/" + item + "/output"; path != ""; {
		var page obj
		g.me.call(200, "GET", path, nil, &page)
		if page["offset"] != float64(len(text)) {
			t.Fatalf("a page of %v follows %d bytes", page["offset"], len(text))
		}
		text += page["text"].(string)
		path = ""
		if next, more := page["next"]; more {
			b, _ := json.Marshal(next)
			path = "/sessions/" + id + "/items/" + item + "/output?limit=50000&offset=" + string(b)
		} else if page["total"] != float64(len(text)) {
			t.Errorf("%d bytes of %v", len(text), page["total"])
		}
	}
	if strings.Count(text, "\n") != 40000 || !strings.HasSuffix(text, "\n40000\n") {
		t.Errorf("%d bytes, %d lines", len(text), strings.Count(text, "\n"))
	}
	res := g.me.do("GET", "/sessions/"+id+"/items/"+item+"/output/text", nil)
	b, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || string(b) != text || res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("as text: %d bytes, %v, %v", len(b), res.Header, err)
	}
	if md := g.me.exportOf(id, "markdown"); !strings.Contains(md, "\n20000\n") {
		t.Error("the transcript has the ends of the output only")
	}
	g.you.call(404, "GET", "/sessions/"+id+"/items/"+item+"/output", nil, nil)
	g.you.call(404, "GET", "/sessions/"+id+"/items/"+item+"/output/text", nil, nil)
	g.me.call(404, "GET", "/sessions/"+g.me.session(nil)+"/items/"+item+"/output", nil, nil)
	g.me.call(422, "GET", "/sessions/"+id+"/items/"+item+"/output?offset=-1", nil, nil)
}
