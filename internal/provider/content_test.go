//go:build unix

package provider_test

import (
	"path/filepath"
	"syscall"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// An image that an agent made a pipe is refused. Nobody waits for its other end.
func TestAnImageThatIsAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "shot.png"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := provider.Blocks(dir, []thole.Input{{Type: "image", URL: "shot.png"}}, func(string, string) any { return nil })
	if thole.CodeOf(err) != thole.CodeInvalid {
		t.Fatal(err)
	}
}
