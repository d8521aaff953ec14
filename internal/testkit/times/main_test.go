package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The real go test, on tests that pass, fail, skip, end their process and do not
// build: its output is that without -v, of failures whole, and each test has a time.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module m\n\ngo 1.24\n")
	write("good/x_test.go", "package good\n\nimport \"testing\"\n\nfunc TestQuiet(t *testing.T) { t.Log(\"nobody asks\") }\nfunc TestSkips(t *testing.T) { t.Skip(\"not here\") }\n")
	write("bad/x_test.go", `package bad

import "testing"

func TestOuter(t *testing.T) {
	t.Run("inner", func(t *testing.T) { t.Log("before"); t.Error("the cause") })
}
func TestQuiet(t *testing.T) { t.Log("nobody asks") }
`)
	write("ends/x_test.go", "package ends\n\nimport \"os\"\nimport \"testing\"\n\nfunc TestEnds(t *testing.T) { println(\"last words\"); os.Exit(3) }\n")
	write("broken/x_test.go", "package broken\n\nfunc f() { nowhere() }\n")
	cmd := exec.Command("go", "test", "-json", "-count=1", "./...")
	cmd.Dir = dir
	raw, err := cmd.Output()
	if err == nil {
		t.Fatal("go test is content")
	}
	times := filepath.Join(dir, "times")
	var out bytes.Buffer
	if err := follow(bytes.NewReader(raw), &out, times); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ok  \tm/good", "FAIL\tm/bad", "before\n", "the cause\n", "--- FAIL: TestOuter", "--- FAIL: TestOuter/inner", "last words\n", "FAIL\tm/ends", "undefined: nowhere", "FAIL\tm/broken [build failed]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(out.String(), "nobody asks") || strings.Contains(out.String(), "===") {
		t.Error("it says what nobody asked for")
	}
	if t.Failed() {
		t.Log(out.String())
	}
	var table bytes.Buffer
	if err := printSlowest(&table, times, 2); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(table.String(), "\n"); got != 3 || !strings.HasPrefix(table.String(), "slowest tests of 4:\n") {
		t.Errorf("%s", table.String())
	}
}
