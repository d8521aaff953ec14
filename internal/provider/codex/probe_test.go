package codex

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// An unknown version is believed what its own protocol says: here the real codex
// under another version's name, with words taken out of its description.
func TestProbeOfAnUnknownVersion(t *testing.T) {
	probe := func(t *testing.T, without string) provider.Info {
		script := filepath.Join(t.TempDir(), "codex")
		text := "#!/bin/sh\nreal='" + lab.Codex(t) + "'\n" +
			"case \"$*\" in\n--version) echo 'codex-cli 99.0.0';;\n" +
			"*generate-json-schema*) \"$real\" \"$@\" && sed -i -E 's#" + without + "#gone#g' \"$5\"/*.json;;\n*) exec \"$real\" \"$@\";;\nesac\n"
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return New(script).Probe(context.Background())
	}
	t.Run("everything there", func(t *testing.T) {
		info, want := probe(t, "no such word"), measured()
		if c := info.Capabilities; !info.Available || c.Steer != want.Steer || c.HumanLoop != want.HumanLoop || c.TodoStream != want.TodoStream || c.PlanMode != want.PlanMode || c.Usage != want.Usage || c.Fork != want.Fork || c.ToolApproval != want.ToolApproval {
			t.Errorf("%+v", info)
		}
	})
	t.Run("no steering and no plan", func(t *testing.T) {
		info := probe(t, `"turn/(steer|plan/updated)"`)
		c := info.Capabilities
		if !info.Available || c.Steer != provider.Unavailable || c.TodoStream != provider.Unavailable || !c.Resume.OK() || !c.HumanLoop.OK() {
			t.Errorf("%+v", info)
		}
		if c.Notes["steer"] == "" || c.Notes["todo_stream"] == "" || !strings.Contains(info.Problem, "99.0.0") {
			t.Errorf("nothing is declared: %+v", info)
		}
	})
	t.Run("another protocol altogether", func(t *testing.T) {
		info := probe(t, `"turn/start"`)
		if !info.Available || info.Capabilities.ToolApproval.OK() || !info.Capabilities.Resume.OK() || !strings.Contains(info.Problem, "codex exec") {
			t.Errorf("%+v", info)
		}
	})
}

// Users choose among the models that the real codex names, with the efforts of each.
func TestModels(t *testing.T) {
	info := New(lab.Codex(t)).Probe(context.Background())
	if len(info.Models) == 0 {
		t.Fatalf("codex names no models: %+v", info)
	}
	for _, m := range info.Models {
		if m.ID == "" || m.Title == "" || m.Default || len(m.Efforts) == 0 || !slices.Contains(m.Efforts, m.Effort) || !slices.Contains(m.Inputs, "text") {
			t.Errorf("%+v", m)
		}
	}
	got := catalogue([]byte(`{"models":[{"slug":"b","visibility":"list","priority":2,"new":1},{"slug":"c","visibility":"hide","priority":0},
		{"slug":"a","display_name":"A","visibility":"list","priority":1,"supported_reasoning_levels":[{"effort":"low"},{"effort":"high"}],"default_reasoning_level":"low","input_modalities":["text"]}]}`))
	want := []provider.Model{{ID: "a", Title: "A", Efforts: []string{"low", "high"}, Effort: "low", Inputs: []string{"text"}}, {ID: "b", Title: "b"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := catalogue([]byte("no such command")); got != nil {
		t.Errorf("from nothing: %+v", got)
	}
}
