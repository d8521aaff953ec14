package shelf

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/git"
)

// maxPipeTries is how often git begins again because it found more pipes.
const maxPipeTries = 3

// past runs git past pipes: where one holds it, it begins again without them.
func (d *desk) past(ctx context.Context, c git.Cmd) ([]byte, error) {
	c.Files = d.tree
	for try := 1; ; try++ {
		c.Hide = nil
		for _, path := range d.pipes {
			if d.isPipe(path) { // else there is nothing to hide
				c.Hide = append(c.Hide, filepath.Join(d.tree, path))
			}
		}
		out, err := d.git.Run(ctx, c)
		var held *git.PipesError
		if !errors.As(err, &held) {
			return out, err
		}
		in, again := c.Stdin.(io.Seeker)
		if again {
			_, failed := in.Seek(0, io.SeekStart)
			again = failed == nil
		}
		if !again && c.Stdin != nil || c.Stdout != nil || try == maxPipeTries {
			return nil, thole.Errorf(thole.CodeUnsupported, "%w", err).WithHint("remove it")
		}
		if err := os.Remove(c.Env["GIT_INDEX_FILE"] + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) { // of the run that was ended
			return nil, err
		}
		d.pipes = append(d.pipes, held.Paths...)
		if err := os.WriteFile(d.pipesFile(), []byte(strings.Join(d.pipes, "\x00")), 0o600); err != nil {
			return nil, err
		}
	}
}

func (d *desk) pipesFile() string { return filepath.Join(d.at, "pipes") }

// readPipes takes over the pipes that earlier looks found, as far as they still are some: git
// does not open each of them each time.
func (d *desk) readPipes() {
	text, _ := os.ReadFile(d.pipesFile()) // mostly there are none
	d.pipes = nil
	for path := range strings.SplitSeq(string(text), "\x00") {
		if path != "" && d.isPipe(path) {
			d.pipes = append(d.pipes, path)
		}
	}
}

func (d *desk) isPipe(path string) bool {
	st, err := os.Lstat(filepath.Join(d.tree, path))
	return err == nil && st.Mode().Type() == fs.ModeNamedPipe
}
