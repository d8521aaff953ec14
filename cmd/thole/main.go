// Command thole is the whole program: every server, every client command.
package main

import (
	"os"

	"github.com/tholehq/thole/internal/cli"
)

func main() {
	keepFiles()
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
