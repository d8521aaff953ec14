//go:build linux

package box_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/tholehq/thole/internal/box"
	"github.com/tholehq/thole/internal/testkit/lab"
)

// BenchmarkReady against BenchmarkBare is what the init costs a box;
// BenchmarkSpawn against BenchmarkForkExec what a box costs a program.
func BenchmarkReady(b *testing.B) {
	cfg := config(lab.Bwrap(b), program(b))
	for b.Loop() {
		made, err := box.Start(b.Context(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		made.Close()
		b.StartTimer()
	}
}

func BenchmarkBare(b *testing.B) {
	cfg := config(lab.Bwrap(b), program(b))
	args := append(cfg.Args[:len(cfg.Args)-1-len(box.InitArgs)], "/bin/true")
	for b.Loop() {
		if out, err := exec.Command(cfg.Path, args...).CombinedOutput(); err != nil {
			b.Fatal(err, string(out))
		}
	}
}

func BenchmarkSpawn(b *testing.B) {
	made := start(b)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	for b.Loop() {
		child, err := made.Spawn(box.Command{Path: "/bin/true", Argv: []string{"true"}, Files: [3]*os.File{null, null, null}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := child.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkForkExec(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
