package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tholehq/thole/test/e2e/home"
)

var (
	// called is thole with its arguments, as far as they are plain words and flags.
	called = regexp.MustCompile(`(?:^|[\s(;|&])thole((?:\s+[^\s;|&()#]+)+)`)
	// span is code in running text.
	span = regexp.MustCompile("`(thole\\s[^`]+)`")
	flag = regexp.MustCompile(`^--[a-z][a-z-]*`)
	// target is what a line asks make for.
	target = regexp.MustCompile(`(?m)^\s*make((?: [a-z-]+)+)`)
)

// Every command and every flag that a document names exists.
func TestCommandsExist(t *testing.T) {
	t.Parallel()
	h := home.New(t)
	help := map[string]string{}
	asked := func(words []string) (string, bool) {
		key := strings.Join(words, " ")
		text, known := help[key]
		if !known {
			if out, _, code := h.Run(append([]string{"help"}, words...)...); code == 0 {
				text = out
			}
			help[key] = text
		}
		return text, text != ""
	}
	check := func(where, command string, words []string) {
		path := []string{}
		text, _ := asked(path)
		for _, w := range words {
			longer, ok := asked(append(path, w))
			if !ok {
				break
			}
			path, text = append(path, w), longer
		}
		if strings.HasSuffix(where, "docs/status.md") && words[0] == "serve" {
			return // listed there as missing
		}
		if len(path) == 0 && !strings.HasPrefix(words[0], "-") {
			t.Errorf("%s: there is no thole %s: %s", where, words[0], command)
			return
		}
		if len(path) < len(words) && strings.Contains(text, "Available Commands:") && regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(words[len(path)]) {
			t.Errorf("%s: there is no thole %s %s: %s", where, strings.Join(path, " "), words[len(path)], command)
		}
		for _, w := range words {
			if w == "--" {
				break
			}
			if f := flag.FindString(w); f != "" && !regexp.MustCompile(f+`\b`).MatchString(text) {
				t.Errorf("%s: thole %s has no %s: %s", where, strings.Join(path, " "), f, command)
			}
		}
	}
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	commands, targets := 0, 0
	for _, name := range documents(t) {
		fenced, text := blocks(t, name)
		for _, m := range span.FindAllStringSubmatch(text, -1) {
			commands++
			check(name, m[1], strings.Fields(strings.SplitN(m[1], ";", 2)[0])[1:])
		}
		for _, b := range fenced {
			if b.lang != "sh" {
				continue
			}
			script := strings.ReplaceAll(strings.Join(b.lines, "\n"), "\\\n", " ")
			for line := range strings.Lines(script) {
				line, _, _ = strings.Cut(line, " #")
				for _, m := range called.FindAllStringSubmatch(line, -1) {
					commands++
					check(b.file, m[0], strings.Fields(m[1]))
				}
			}
			for _, m := range target.FindAllStringSubmatch(script, -1) {
				for _, goal := range strings.Fields(m[1]) {
					targets++
					if !regexp.MustCompile(`(?m)^` + goal + `:`).Match(makefile) {
						t.Errorf("%s: make has no %s", b.file, goal)
					}
				}
			}
		}
	}
	if commands < 100 || targets < 4 {
		t.Errorf("only %d commands and %d targets of make were found", commands, targets)
	}
}
