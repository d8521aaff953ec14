// Command thole is the whole program: every server, every client command.
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/cli"
)

func main() {
	if slices.Equal(os.Args[1:], box.InitArgs) { // before all else: executord waits for it
		fmt.Fprintln(os.Stderr, "thole box init:", box.Init())
		os.Exit(1)
	}
	keepFiles()
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
