// Package docs runs the commands that the documents show, on the real program.
//
// A block of commands is fenced with ```sh. All of a document's run as one script, in
// the order in which a reader would type them, next to a `thole up --demo`. $THREAD
// names a thread there. Three words after sh change that:
//
//	```sh serves            each line is a server: it starts, says something, and ends when it is asked to
//	```sh stays             of a guide: a server that stays up for all of the page
//	```sh norun: REASON     cannot run in a test; its commands and flags must exist
//
// Commands in running text (`thole job wait`) must exist too.
//
// Guides (docs/guide) are typed into a terminal instead, by a reader with all agents, and
// have to end with the last block of text on the screen. Their recordings are made so.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// block is a fenced block of a document.
type block struct {
	file  string
	line  int // of its first line
	lang  string
	how   string // what follows the language
	lines []string
}

// documents are the files whose commands are promised to work. CHANGELOG.md is a
// record of earlier ones, and docs/reference is written from the commands themselves.
func documents(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "GLOSSARY.md", "SECURITY.md", "web/README.md", "docs/*.md", "docs/*/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("no document %s: %v", pattern, err)
		}
		for _, name := range names {
			if filepath.Base(filepath.Dir(name)) != "reference" {
				out = append(out, name)
			}
		}
	}
	return out
}

func read(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(b), "\n")
}

// blocks returns the fenced blocks of a document and the text between them.
func blocks(t *testing.T, name string) (fenced []block, text string) {
	t.Helper()
	var open *block
	var prose strings.Builder
	for i, line := range read(t, name) {
		fence, is := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case is && open == nil:
			lang, how, _ := strings.Cut(fence, " ")
			open = &block{file: strings.TrimPrefix(name, root+"/"), line: i + 2, lang: lang, how: how}
		case is:
			fenced = append(fenced, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, line)
		default:
			prose.WriteString(line + "\n")
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the block does not end", open.file, open.line)
	}
	return fenced, prose.String()
}

// commandLine is how a line begins that a reader is to type.
var commandLine = regexp.MustCompile(`^\s*(\$ )?(sudo )?(thole|make|npm|go|git|curl|docker|dpkg|codex|scripts/\S+|[a-z]+=\$\(thole) `)

func TestCommandsStandInFences(t *testing.T) {
	languages := []string{"sh", "toml", "json", "text", "mermaid", "go", "http", "yaml", "sql"}
	for _, name := range documents(t) {
		fenced, text := blocks(t, name)
		for _, b := range fenced {
			if !slices.Contains(languages, b.lang) {
				t.Errorf("%s:%d: the block has the language %q; commands are sh, what a program prints is text", b.file, b.line, b.lang)
			}
			reason, norun := strings.CutPrefix(b.how, "norun: ")
			switch {
			case b.lang != "sh" && slices.ContainsFunc(b.lines, commandLine.MatchString):
				t.Errorf("%s:%d: commands stand in a block of %s", b.file, b.line, b.lang)
			case b.lang == "sh" && b.how != "" && b.how != "serves" && b.how != "stays" && (!norun || len(strings.Fields(reason)) < 2):
				t.Errorf("%s:%d: %q says neither serves, stays nor norun with a reason", b.file, b.line, b.how)
			}
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "    ") && commandLine.MatchString(line) {
				t.Errorf("%s: %q is not in a ```sh block", name, strings.TrimSpace(line))
			}
		}
	}
}
