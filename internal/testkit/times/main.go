// Command times reads from `go test -json`: it prints what `go test` prints
// without -v, failures with all they said, and keeps how long each test took.
//
//	go test -json … | times -keep FILE
//	times -slowest 20 FILE
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	keep := flag.String("keep", "", "file to append the times of the tests on stdin to")
	slowest := flag.Int("slowest", 0, "print so many of the slowest tests in a file")
	flag.Parse()
	var err error
	if *slowest > 0 {
		err = printSlowest(os.Stdout, flag.Arg(0), *slowest)
	} else {
		err = follow(os.Stdin, os.Stdout, *keep)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "times:", err)
		os.Exit(1)
	}
}

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// follow prints events as they come. What a test said waits until its outermost one
// has ended well, or badly.
func follow(in io.Reader, out io.Writer, keep string) error {
	times, err := os.OpenFile(keep, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer times.Close()
	type name struct{ pack, test string }
	said := map[name][]string{}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil && line == "" {
			if err == io.EOF {
				return nil
			}
			return err
		}
		var e event
		if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" { // not go test's
			fmt.Fprint(out, line)
			continue
		}
		outer, _, inner := strings.Cut(e.Test, "/")
		of := name{e.Package, outer}
		switch e.Action {
		case "output", "build-output":
			switch {
			case e.Test == "" && e.Output != "PASS\n":
				fmt.Fprint(out, e.Output)
			case e.Test != "" && !strings.HasPrefix(e.Output, "=== "):
				said[of] = append(said[of], e.Output)
			}
		case "pass", "skip", "fail":
			if inner {
				continue
			}
			if e.Test != "" {
				fmt.Fprintf(times, "%.2f\t%s\t%s\n", e.Elapsed, e.Package, e.Test)
			}
			for of, words := range said {
				switch {
				case e.Test != "" && of != (name{e.Package, e.Test}) || of.pack != e.Package:
					continue // not this test, or not of this package that ended
				case e.Action == "fail": // a package that fails with tests not ended has crashed in them
					fmt.Fprint(out, strings.Join(words, ""))
				}
				delete(said, of)
			}
		}
	}
}

func printSlowest(out io.Writer, file string, n int) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	type row struct {
		seconds    float64
		pack, test string
	}
	var rows []row
	for line := range strings.Lines(string(text)) {
		var r row
		if _, err := fmt.Sscan(line, &r.seconds, &r.pack, &r.test); err != nil {
			return fmt.Errorf("line %q: %w", line, err)
		}
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintf(out, "slowest tests of %d:\n", len(rows))
	for _, r := range rows[:min(n, len(rows))] {
		fmt.Fprintf(out, "%8.2f s  %s  %s\n", r.seconds, r.pack, r.test)
	}
	return nil
}
