// Command faultgen writes a fault wrapper for a port's interface:
//
//	//go:generate go run github.com/tholehq/thole/internal/testkit/fault/cmd/faultgen -port DIR -type NAME -out FILE
//
// DIR is the port's directory, relative to the file with the directive; the
// wrapper becomes part of the package of that file.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/tholehq/thole/internal/testkit/fault"
)

func main() {
	port := flag.String("port", "", "directory of the port's package")
	name := flag.String("type", "", "name of the interface")
	out := flag.String("out", "", "file to write")
	pkg := flag.String("package", os.Getenv("GOPACKAGE"), "package of the file")
	flag.Parse()
	if err := run(*port, *name, *pkg, *out); err != nil {
		fmt.Fprintln(os.Stderr, "faultgen:", err)
		os.Exit(1)
	}
}

func run(port, name, pkg, out string) error {
	if port == "" || name == "" || out == "" || pkg == "" {
		return fmt.Errorf("-port, -type, -out and -package (or GOPACKAGE) are needed")
	}
	cmd := exec.Command("go", "list", "-f", "{{.ImportPath}}", ".")
	cmd.Dir = port
	path, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list in %s: %w", port, err)
	}
	src, err := fault.Generate(port, strings.TrimSpace(string(path)), name, pkg)
	if err != nil {
		return err
	}
	return os.WriteFile(out, src, 0o644)
}
