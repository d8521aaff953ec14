package appclient_test

import (
	"context"
	"io"
	"log"
	"os"
	"slices"
	"testing"
)

// stage stands in for the test that an example is not: what servers for tests
// want of one.
type stage struct {
	testing.TB
	ends []func()
}

func (s *stage) Helper()                   {}
func (s *stage) Name() string              { return "example" }
func (s *stage) Failed() bool              { return false }
func (s *stage) Output() io.Writer         { return io.Discard }
func (s *stage) Context() context.Context  { return context.Background() }
func (s *stage) Logf(string, ...any)       {}
func (s *stage) Cleanup(f func())          { s.ends = append(s.ends, f) }
func (s *stage) Fatal(args ...any)         { log.Fatal(args...) }
func (s *stage) Errorf(f string, a ...any) { log.Fatalf(f, a...) }

func (s *stage) TempDir() string {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (s *stage) end() {
	for _, f := range slices.Backward(s.ends) {
		f()
	}
}
