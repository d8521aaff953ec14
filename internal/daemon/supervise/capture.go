package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// room is what a command's end needs of a full disk: its result file, the manifest
// of its artifact and the commits that end the job. It is set aside before the
// command begins, and given back when it has ended.
const room = 1 << 20

// setAside takes the room of a job. On a disk without it no command begins; where
// something else keeps it from being taken, none is needed.
func setAside(path string) error {
	err := os.WriteFile(path, make([]byte, room), 0o600)
	if err == nil {
		return nil
	}
	_ = os.Remove(path)
	if err = reason(err); full(err) {
		return err
	}
	return nil
}

func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

var errOverLimit = fmt.Errorf("over the limit of %d bytes", MaxOutput)

// capture keeps a command's output. It takes all it is given, so that no command
// waits for a disk: from where the disk, or the limit, takes no more, output is
// dropped, and lost says why.
type capture struct {
	f          *os.File
	kept, most int64
	lost       error
}

func (c *capture) Write(b []byte) (int, error) {
	if c.lost != nil {
		return len(b), nil //nolint:nilerr // output is read to its end and dropped; missing says why
	}
	n, err := c.f.Write(b[:min(int64(len(b)), c.most-c.kept)])
	c.kept += int64(n)
	switch {
	case full(err):
		c.lost = reason(err)
		c.giveWay()
	case err != nil:
		c.lost = reason(err)
	case n < len(b):
		c.lost = errOverLimit
	}
	return len(b), nil
}

// giveWay gives back the end of an output that filled the disk: a user who cancels the
// command, and every other job of the home, needs some room too.
func (c *capture) giveWay() {
	if c.kept <= room {
		return // something else filled it
	}
	if c.f.Truncate(c.kept-room) != nil {
		return
	}
	c.kept -= room
	_, _ = c.f.Seek(c.kept, io.SeekStart)
}

// close makes what was kept durable, and lets it end with a line that says so if
// it is not all.
func (c *capture) close() {
	if err := c.f.Sync(); err != nil && c.lost == nil {
		c.lost = reason(err)
	}
	if c.lost != nil {
		_, _ = fmt.Fprintf(c.f, "\n[%s]\n", c.missing())
		_ = c.f.Sync()
	}
	_ = c.f.Close()
}

// missing says what is not there, "" if nothing is missing.
func (c *capture) missing() string {
	if c.lost == nil {
		return ""
	}
	return fmt.Sprintf("output is incomplete after %d bytes: %v", c.kept, c.lost)
}

// reason leaves out the path, which is of no use to who reads the result.
func reason(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	if full(err) {
		return fmt.Errorf("the disk is full: %w", err)
	}
	return err
}
