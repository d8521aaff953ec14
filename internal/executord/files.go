package executord

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// filesDir is where files that come with messages are laid. It ignores itself, so that no
// commit, checkpoint or difference has them unless the agent copies them out.
const filesDir = ".thole/files"

// maxSameName bounds the files of one name.
const maxSameName = 1000

// layFiles lays the files of a message into the workspace and says before the rest of it
// where they are. An agent may have put anything there: links are not followed, nothing that is
// there is changed, and a file that is there already with the same content is taken.
func layFiles(workspace string, input []thole.Input) ([]thole.Input, error) {
	isFile := func(in thole.Input) bool { return in.Type == thole.InputFile }
	if !slices.ContainsFunc(input, isFile) {
		return input, nil
	}
	bad := func(err error) error {
		return thole.Errorf(thole.CodeInvalid, "lay the message's files into %s: %w", filesDir, err).WithHint("move away what is in the place of that directory")
	}
	root, err := beneath.Trusted(workspace)
	if err != nil {
		return nil, bad(err)
	}
	defer root.Close()
	dir, ignore, err := root.Parent(filesDir+"/.gitignore", true)
	if err != nil {
		return nil, bad(err)
	}
	defer dir.Close()
	if err := write(dir, ignore, []byte("*\n")); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, bad(err)
	}
	rest, told := make([]thole.Input, 0, len(input)), ""
	for _, in := range input {
		if !isFile(in) {
			rest = append(rest, in)
			continue
		}
		media, data, err := in.Content()
		if err != nil {
			return nil, err
		}
		name, err := lay(dir, thole.FileName(in.Name), data)
		if err != nil {
			return nil, bad(err)
		}
		told += fmt.Sprintf("The user sent a file with this message: %s (%s, %d bytes). It is at %s\n", in.Name, media, len(data), filepath.Join(workspace, filesDir, name))
	}
	return append(thole.Text(told+"\n"), rest...), nil
}

// lay makes a file, under another name if its own is taken by something else.
func lay(dir *beneath.Dir, name string, data []byte) (string, error) {
	ext := filepath.Ext(name)
	for n := 1; n <= maxSameName; n++ {
		as := name
		if n > 1 {
			as = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
		}
		err := write(dir, as, data)
		if err == nil || errors.Is(err, fs.ErrExist) && holds(dir, as, data) {
			return as, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("there are %d files called %s", maxSameName, name)
}

func write(dir *beneath.Dir, name string, data []byte) error {
	f, err := dir.Create(name, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = dir.Remove(name)
	}
	return err
}

// holds reports whether a file is there with this content.
func holds(dir *beneath.Dir, name string, data []byte) bool {
	f, err := dir.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	have, err := io.ReadAll(io.LimitReader(f, int64(len(data))+1))
	return err == nil && bytes.Equal(have, data)
}
