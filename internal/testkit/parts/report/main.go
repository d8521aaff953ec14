// Command report prints the table of real parts that a test run used. It fails
// when a wanted part was not used and CI=true; elsewhere it only says so.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/tholehq/thole/internal/testkit/parts"
)

func main() {
	want := flag.String("want", "", "parts that must have been used, separated by commas")
	flag.Parse()
	empty, err := report(flag.Arg(0), strings.FieldsFunc(*want, func(r rune) bool { return r == ',' }))
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	if len(empty) == 0 {
		return
	}
	fmt.Println("no test ran on: " + strings.Join(empty, ", "))
	if os.Getenv("CI") == "true" {
		os.Exit(1)
	}
}

func report(path string, want []string) ([]string, error) {
	rows, err := parts.Rows(path, want)
	if err != nil {
		return nil, err
	}
	return parts.Print(os.Stdout, rows)
}
