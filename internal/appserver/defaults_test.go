package appserver_test

import (
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/tholetest"
)

// What a client writes as its settings is what new threads start with, also after
// a restart, and whose maker names a model gets that one.
func TestDefaultsOfNewThreads(t *testing.T) {
	rig := tholetest.New(t)
	w := join(t, rig, full)
	read := func(w *wire) (model, effort any) {
		config := w.ok("config/read", `{}`)["config"].(map[string]any)
		return config["model"], config["model_reasoning_effort"]
	}
	before, _ := read(w)
	w.ok("config/batchWrite", `{"edits":[{"keyPath":"model","value":"test/other","mergeStrategy":"replace"},
		{"keyPath":"model_reasoning_effort","value":"high","mergeStrategy":"upsert"}],"filePath":null,"expectedVersion":null}`)
	w.close()
	rig.Restart()
	w = join(t, rig, full)
	if model, effort := read(w); model != "test/other" || effort != "high" {
		t.Errorf("after the write the settings are %v, %v", model, effort)
	}
	if v := w.ok("thread/start", `{}`); v["model"] != "test/other" || v["reasoningEffort"] != "high" {
		t.Errorf("a new thread has %v, %v", v["model"], v["reasoningEffort"])
	}
	if v := w.ok("thread/start", `{"model":"test/script"}`); v["model"] != "test/script" {
		t.Errorf("a thread with a model of its own has %v", v["model"])
	}
	w.ok("config/value/write", `{"keyPath":"model","value":null,"mergeStrategy":"replace"}`)
	if model, _ := read(w); model != before {
		t.Errorf("without a choice the model is %v, was %v", model, before)
	}
}

// A write that is refused changes nothing, not even by the edits before the bad one.
func TestConfigWriteIsRefused(t *testing.T) {
	w := join(t, tholetest.New(t), full)
	for _, c := range []struct{ edits, version, want string }{
		{`{"keyPath":"model","value":"test/x"},{"keyPath":"tui.theme","value":"dark"}`, `null`, "tui.theme"},
		{`{"keyPath":"model","value":7}`, `null`, "a text is wanted"},
		{`{"keyPath":"model","value":"test/x"}`, `"another"`, "have changed"},
	} {
		if e := w.refused("config/batchWrite", `{"edits":[`+c.edits+`],"expectedVersion":`+c.version+`}`); !strings.Contains(e.Message, c.want) {
			t.Errorf("%s: %s", c.edits, e.Message)
		}
	}
	if v := w.ok("thread/start", `{}`); v["model"] == "test/x" {
		t.Error("a refused write took effect")
	}
	ok := w.ok("config/batchWrite", `{"edits":[{"keyPath":"model","value":"test/y"}]}`)
	w.ok("config/value/write", `{"keyPath":"model","value":"test/z","expectedVersion":"`+ok["version"].(string)+`"}`)
}
