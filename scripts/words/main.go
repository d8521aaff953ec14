// Command words fails on words of words.txt in comments, messages and documents:
// an ordinary English word exists for each.
//
// In Go files it reads comments, and string literals outside of tests; in other
// files every line. Generated files, test data, applied migrations and the records of what was
// done or measured are left out.
package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

//go:embed words.txt
var list string

// word is a pattern and what to write instead.
type word struct {
	pattern *regexp.Regexp
	instead string
}

// rules are the forbidden words, and the phrases that may contain them.
type rules struct {
	words []word
	ok    []*regexp.Regexp
}

// tests are files whose strings are prompts and what they are compared with.
var tests = regexp.MustCompile(`_test\.go$|test/[^/]+\.go$`)

// mark is what a line says that quotes a word.
const mark = "words:ok"

func main() {
	r, err := parse(list)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	names, err := files(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	found := 0
	for _, name := range names {
		b, err := os.ReadFile(name)
		if os.IsNotExist(err) { // removed, not yet committed
			continue
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		for _, hit := range r.check(name, b) {
			fmt.Println(hit)
			found++
		}
	}
	if found > 0 {
		fmt.Printf("%d uses of words on the list (scripts/words/words.txt)\n", found)
		os.Exit(1)
	}
}

func parse(text string) (rules, error) {
	var r rules
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if ok, is := strings.CutPrefix(line, "ok "); is {
			p, err := regexp.Compile("(?i)" + ok)
			if err != nil {
				return r, err
			}
			r.ok = append(r.ok, p)
			continue
		}
		pattern, instead, is := strings.Cut(line, " => ")
		if !is {
			return r, fmt.Errorf("words.txt: %q has no =>", line)
		}
		p, err := regexp.Compile("(?i)" + pattern)
		if err != nil {
			return r, err
		}
		r.words = append(r.words, word{p, instead})
	}
	return r, nil
}

// kinds are the files that people read.
var kinds = []string{"*.go", "*.md", "*.ts", "*.tsx", "*.mjs", "*.css", "*.sh", "*.yml", "*.yaml", "*.html", "Makefile", "scripts/*", ".ci/*"}

// exempt are files whose words are not the project's to choose today: what was
// generated or recorded, what a database has already run, and the list itself.
var exempt = regexp.MustCompile(`(^|/)(testdata|node_modules|dist|migrations)/|^CHANGELOG\.md$|^docs/status\.md$|RESULTS\.md$|^scripts/words/|_gen\.go$|\.gen\.|generated`)

func files(only []string) ([]string, error) {
	if len(only) > 0 {
		return only, nil
	}
	out, err := exec.Command("git", append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "-z"}, kinds...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(names, func(n string) bool { return exempt.MatchString(n) }), nil
}

// check returns one line for each use.
func (r rules) check(name string, b []byte) []string {
	if !strings.HasSuffix(name, ".go") {
		var hits []string
		lines := bufio.NewScanner(strings.NewReader(string(b)))
		lines.Buffer(nil, len(b)+1)
		for n := 1; lines.Scan(); n++ {
			hits = append(hits, r.line(name, n, lines.Text())...)
		}
		return hits
	}
	if strings.Contains(string(b[:min(len(b), 300)]), "// Code generated ") {
		return nil
	}
	var hits []string
	var s scanner.Scanner
	set := token.NewFileSet()
	file := set.AddFile(name, -1, len(b))
	s.Init(file, b, nil, scanner.ScanComments)
	marked := map[int]bool{} // lines that quote
	source := strings.Split(string(b), "\n")
	for i, line := range source {
		marked[i+1] = strings.Contains(line, mark)
	}
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return hits
		}
		if tok != token.COMMENT && (tok != token.STRING || tests.MatchString(name)) {
			continue
		}
		at := file.Line(pos)
		for i, line := range strings.Split(text, "\n") {
			if !marked[at+i] {
				hits = append(hits, r.line(name, at+i, line)...)
			}
		}
	}
}

func (r rules) line(name string, n int, text string) (hits []string) {
	if strings.Contains(text, mark) {
		return nil
	}
	for _, p := range r.ok {
		text = p.ReplaceAllString(text, "")
	}
	for _, w := range r.words {
		for _, use := range w.pattern.FindAllString(text, -1) {
			hits = append(hits, fmt.Sprintf("%s:%d: %q: write %s", name, n, use, w.instead))
		}
	}
	return hits
}
