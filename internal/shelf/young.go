package shelf

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/git"
)

// Git takes a file for unchanged whose size and times are those in the index, and knows
// times by the second. A program that an agent left can write a file in the second in
// which it was looked at and set its time back; only the time of the inode, which it cannot
// set, would show that, and does not within that second. So files that were that young when
// they were looked at are looked at again the next time.

// indexTime says when the index was written, as far as that shows that it was.
func (d *desk) indexTime() time.Time {
	st, err := os.Lstat(d.index())
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

func (d *desk) youngFile() string { return filepath.Join(d.at, "young") }

// readYoung lists the files that were too young to be known.
func (d *desk) readYoung() []string {
	text, err := os.ReadFile(d.youngFile())
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(string(text), "\x00")
}

// writeYoung finds the files whose inodes changed in the second in which a look began, or
// later. listing is that of the index, nil where it is to be asked for.
func (d *desk) writeYoung(ctx context.Context, start time.Time, listing []byte) (err error) {
	if listing == nil {
		if listing, err = d.look(ctx, git.Cmd{Args: []string{"ls-files", "-z", "--debug"}, Limit: 16 * maxRaw}); err != nil {
			return err
		}
	}
	var young []string
	for path, rest, ok := bytes.Cut(listing, []byte{0}); ok; path, rest, ok = bytes.Cut(rest, []byte{0}) {
		ctime, more, _ := bytes.Cut(rest, []byte(":"))
		seconds, _, _ := bytes.Cut(more, []byte(":"))
		sec, err := strconv.ParseInt(string(bytes.TrimSpace(seconds)), 10, 64)
		if err != nil || string(ctime) != "  ctime" {
			return errors.New("git described its index in a way that is not understood")
		}
		if sec >= start.Unix()-1 { // the clock of files lags a little
			young = append(young, string(path))
		}
		for range 5 { // lines about the file; then comes the next one
			if i := bytes.IndexByte(rest, '\n'); i >= 0 {
				rest = rest[i+1:]
			}
		}
	}
	if len(young) == 0 {
		err = os.Remove(d.youngFile())
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	return os.WriteFile(d.youngFile(), []byte(strings.Join(young, "\x00")), 0o600)
}
