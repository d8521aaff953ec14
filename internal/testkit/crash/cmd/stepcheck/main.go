// Command stepcheck fails when the program has a durable step that no crash
// test was killed at. Run it after the tests:
//
//	go run ./internal/testkit/crash/cmd/stepcheck [directory]
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/tholehq/thole/internal/testkit/crash"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	missed, total, err := check(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stepcheck:", err)
		os.Exit(2)
	}
	for _, line := range missed {
		fmt.Fprintln(os.Stderr, line)
	}
	fmt.Printf("stepcheck: %d of %d durable steps are covered by crash tests\n", total-len(missed), total)
	if len(missed) > 0 {
		os.Exit(1)
	}
}

func check(root string) (missed []string, total int, err error) {
	steps, err := crash.Steps(root)
	if err != nil {
		return nil, 0, err
	}
	covered, err := crash.Covered()
	if err != nil {
		return nil, 0, err
	}
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		if !covered[step] {
			missed = append(missed, fmt.Sprintf("%s: no crash test kills at durable step %q", steps[step], step))
		}
	}
	return missed, len(steps), nil
}
