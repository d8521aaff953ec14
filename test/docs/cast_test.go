package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A recording is an asciinema file, version 2: a header and one line for each event,
// [seconds, "i" or "o", text]. What was typed is in it, to compare it with the page.
type cast struct {
	typed  []string
	output string
}

// pause is the most that a recording waits for anything.
const pause = 700 * time.Millisecond

func recording(page string) string {
	return filepath.Join(root, "docs/guide/recordings", strings.TrimSuffix(filepath.Base(page), ".md")+".cast")
}

// secrets of one run that have no place in a file.
var secrets = regexp.MustCompile(`code=[A-Za-z0-9_-]+|thole_[A-Za-z0-9_-]{20,}`)

// record writes what a terminal showed. Paths of this machine become those of a reader.
func record(t *testing.T, page string, all []typed, paths map[string]string) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	put := func(v any) {
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	put(map[string]any{"version": 2, "width": columns, "height": rows, "title": filepath.Base(page)})
	now := time.Duration(0)
	event := func(after time.Duration, kind, text string) {
		now += min(after, pause)
		put([]any{float64(now.Milliseconds()) / 1000, kind, text})
	}
	event(0, "o", "$ ")
	for _, command := range all {
		event(pause, "i", command.command+"\n")
		last := command.at
		var line string
		for _, c := range command.output {
			line += prompted.ReplaceAllString(c.text, "")
			whole := strings.LastIndexByte(line, '\n') + 1
			if whole == 0 {
				continue
			}
			event(c.at.Sub(last), "o", scrub(line[:whole], paths))
			line, last = line[whole:], c.at
		}
		event(0, "o", scrub(prompted.ReplaceAllString(line, ""), paths))
	}
	if err := os.MkdirAll(filepath.Dir(recording(page)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recording(page), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func scrub(text string, paths map[string]string) string {
	for from, to := range paths {
		text = strings.ReplaceAll(text, from, to)
	}
	return secrets.ReplaceAllStringFunc(text, func(s string) string { return s[:strings.IndexAny(s, "=_")+1] + "…" })
}

func readCast(name string) (c cast, err error) {
	body, err := os.ReadFile(name)
	if err != nil {
		return c, err
	}
	lines := bytes.Split(bytes.TrimSpace(body), []byte("\n"))
	var header struct{ Version, Width, Height int }
	if err := json.Unmarshal(lines[0], &header); err != nil || header.Version != 2 || header.Width != columns || header.Height != rows {
		return c, fmt.Errorf("header %s: %v", lines[0], err)
	}
	for _, line := range lines[1:] {
		var at float64
		var kind, text string
		if err := json.Unmarshal(line, &[]any{&at, &kind, &text}); err != nil {
			return c, fmt.Errorf("%s: %v", line, err)
		}
		switch kind {
		case "i":
			c.typed = append(c.typed, strings.TrimSuffix(text, "\n"))
		case "o":
			c.output += text
		}
	}
	return c, nil
}

// Every guide has a recording of what it says now, which ends with the stated result.
func TestRecordingsAreOfTheirPages(t *testing.T) {
	machine := regexp.MustCompile(`/(root|tmp|work|var|home/[^y])[/ ]`)
	for _, page := range guides(t) {
		commands, result := guide(t, page)
		c, err := readCast(recording(page))
		if err != nil {
			t.Errorf("%s has no recording: %v; make recordings", page, err)
			continue
		}
		if !slices.Equal(c.typed, commands) {
			t.Errorf("%s is older than its page; make recordings.\nit types\n%s\nthe page has\n%s", recording(page), strings.Join(c.typed, "\n"), strings.Join(commands, "\n"))
		}
		if err := holds(screen(c.output), result); err != nil {
			t.Errorf("%s: %v", recording(page), err)
		}
		if m := machine.FindString(c.output); m != "" {
			t.Errorf("%s names %s, which is of the machine that made it", recording(page), m)
		}
		if info, err := os.Stat(recording(page)); err != nil || info.Size() > 40<<10 {
			t.Errorf("%s: %v, %d bytes", recording(page), err, info.Size())
		}
	}
}
