// Command forge serves bare repositories below a directory, and GitHub's API as strictly
// as GitHub describes it, to tests in a browser: forge DIR prints both addresses as JSON.
// At the end of its input it prints the pull requests that were opened, and fails if a
// request was one that GitHub would refuse.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/tholehq/thole/internal/testkit/forges"
	"github.com/tholehq/thole/internal/testkit/gitremote"
)

// report is a test outside of go test: faults are printed and counted.
type report struct {
	testing.TB // never set: whatever is not below ends the program
	failed     atomic.Bool
	ends       []func()
}

func (r *report) Helper()          {}
func (r *report) Name() string     { return "test/web" }
func (r *report) Cleanup(f func()) { r.ends = append(r.ends, f) }
func (r *report) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
func (r *report) Errorf(format string, args ...any) {
	r.failed.Store(true)
	r.Logf(format, args...)
}
func (r *report) Error(args ...any) { r.Errorf("%s", fmt.Sprint(args...)) }
func (r *report) Fatal(args ...any) { r.Error(args...); r.end() }
func (r *report) Skip(args ...any)  { r.Fatal(args...) }
func (r *report) Skipf(format string, args ...any) {
	r.Fatalf(format, args...)
}
func (r *report) Fatalf(format string, args ...any) { r.Errorf(format, args...); r.end() }

func (r *report) end() {
	for _, f := range slices.Backward(r.ends) {
		f()
	}
	if r.failed.Load() {
		os.Exit(1)
	}
}

func main() {
	r := &report{}
	say := func(v any) {
		if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
			r.Fatal(err)
		}
	}
	api := forges.GitHub(r)
	say(map[string]string{"git": gitremote.HTTP(r, os.Args[1]), "api": api.URL, "token": forges.Token})
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		r.Fatal(err)
	}
	say(api.Pulls())
	r.end()
}
