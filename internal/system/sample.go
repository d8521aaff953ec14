package system

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/source"
)

//go:embed sample
var sampleFiles embed.FS

// sampleVariable is set for executord where its scripted agent shows a person what to try.
const sampleVariable = "THOLE_DEMO"

// newSample makes the sample repository of a demo where it is not there yet, and the
// source of threads whose maker chose none. Without git there is no sample, and threads
// begin empty.
func newSample(ctx context.Context, dir string, runner *git.Runner, log *slog.Logger) (source.Request, error) {
	if dir == "" {
		return source.Request{}, nil
	}
	if _, err := exec.LookPath("git"); err != nil {
		log.Warn("the demo has no sample repository", "err", err)
		return source.Request{}, nil
	}
	from := source.Request{Kind: thole.SourceBranch, Repo: dir, Local: true}
	if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
		return from, nil
	}
	if err := makeSample(ctx, dir, runner); err != nil {
		return source.Request{}, thole.Errorf(thole.CodeUnavailable, "make the sample repository %s: %w", dir, err).
			WithHint("remove what is there, or use a home of your own with --home")
	}
	return from, nil
}

// makeSample makes the repository next to its place and moves it there: what is there is
// whole.
func makeSample(ctx context.Context, dir string, runner *git.Runner) (err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	room, err := os.MkdirTemp(filepath.Dir(dir), ".sample-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(room)) }()
	if err := os.Chmod(room, 0o755); err != nil {
		return err
	}
	err = fs.WalkDir(sampleFiles, "sample", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := sampleFiles.ReadFile(path)
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(path, ".sh") {
			mode = 0o755
		}
		return os.WriteFile(filepath.Join(room, filepath.Base(path)), data, mode)
	})
	if err != nil {
		return err
	}
	who := map[string]string{"user.name": "thole demo", "user.email": "demo@localhost"}
	for _, args := range [][]string{{"init", "-q", "-b", "main", "."}, {"add", "-A"}, {"commit", "-q", "-m", "Greet"}} {
		if _, err := runner.RunOwn(ctx, git.Cmd{Dir: room, Args: args, Config: who}); err != nil {
			return err
		}
	}
	return os.Rename(room, dir)
}
