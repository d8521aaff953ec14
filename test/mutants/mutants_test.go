package mutants

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// mutant is one file: headers, the text that is there, and what takes its place.
type mutant struct {
	name, rule, file, pkg, test string
	is, becomes                 string
}

func load(t *testing.T) (all []mutant) {
	t.Helper()
	paths, err := filepath.Glob("*.mutant")
	if err != nil || len(paths) == 0 {
		t.Fatal("no mutants: ", err)
	}
	for _, p := range paths {
		body, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		head, rest, ok := strings.Cut(string(body), "-- is\n")
		is, becomes, ok2 := strings.Cut(rest, "-- becomes\n")
		m := mutant{name: strings.TrimSuffix(p, ".mutant"), is: is, becomes: becomes}
		for line := range strings.Lines(head) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "rule":
				m.rule = value
			case "file":
				m.file = value
			case "test":
				m.pkg, m.test, _ = strings.Cut(value, " ")
			}
		}
		if !ok || !ok2 || m.rule == "" || m.file == "" || m.test == "" || is == becomes {
			t.Fatalf("%s: want rule, file, test, -- is and -- becomes", p)
		}
		all = append(all, m)
	}
	return all
}

// apply returns the source file as the mutant makes it.
func (m mutant) apply() (string, bool) {
	src, err := os.ReadFile(filepath.Join(root, m.file))
	return strings.Replace(string(src), m.is, m.becomes, 1), err == nil && strings.Count(string(src), m.is) == 1
}

// TestMutantsApply fails when the code has moved on under a mutant, or when the
// table of the documentation has.
func TestMutantsApply(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(root, "docs/delivery.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range load(t) {
		if _, ok := m.apply(); !ok {
			t.Errorf("%s no longer applies: what it replaces is not in %s, or more than once", m.name, m.file)
		}
		if row := "| " + m.rule + " | `" + m.name + "` | `" + m.test + "` |"; !strings.Contains(string(doc), row) {
			t.Errorf("docs/delivery.md lacks the row\n%s", row)
		}
	}
}

// TestMutantsDie runs, for each mutant, the test that must notice it.
func TestMutantsDie(t *testing.T) {
	if os.Getenv("THOLE_MUTANTS") == "" && os.Getenv("THOLE_SOAK") == "" {
		t.Skip("make mutants runs this")
	}
	all := load(t)
	healthy := map[string][]string{}
	for _, m := range all {
		if !slices.Contains(healthy[m.pkg], m.test) {
			healthy[m.pkg] = append(healthy[m.pkg], m.test)
		}
	}
	for pkg, tests := range healthy {
		if out, ok := run(t, pkg, strings.Join(tests, "|"), ""); !ok || strings.Contains("\n"+out, "\n--- SKIP") {
			t.Fatalf("%s without any mutant:\n%s", pkg, out)
		}
	}
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			changed, ok := m.apply()
			if !ok {
				t.Fatalf("it no longer applies to %s", m.file)
			}
			out, ok := run(t, m.pkg, m.test, overlay(t, m.file, changed))
			if ok {
				t.Fatalf("it lives: %s\n%s", m.rule, out)
			}
			if !regexp.MustCompile(`(?m)^--- FAIL: ` + m.test + `\b`).MatchString(out) {
				t.Fatalf("%s did not fail by itself:\n%s", m.test, out)
			}
		})
	}
}

// overlay lets the go command see another text in place of a file.
func overlay(t *testing.T, file, text string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed, list := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	body, err := json.Marshal(map[string]any{"Replace": map[string]string{abs: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string][]byte{changed: []byte(text), list: body} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "-overlay=" + list
}

func run(t *testing.T, pkg, tests, flag string) (string, bool) {
	t.Helper()
	args := []string{"test", "-count=1", "-v", "-run", "^(" + tests + ")$"}
	if flag != "" {
		args = append(args, flag)
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = root
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "THOLE_SOAK=") || strings.HasPrefix(v, "THOLE_MUTANTS=")
	})
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}
