package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/workspace"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// The CLIs' conversations lie next to the workspace, so that no command that an agent
// runs over its files meets them. The box shows them in the agent's home.

// prepareData makes the directory of an executor's conversations, and in its home the
// place where they are shown. Nothing of the executor runs.
func (d *Driver) prepareData(ctx context.Context, id thole.ExecutorID, boxed bool) error {
	top, err := beneath.Open(d.dir(id))
	if err != nil {
		return err
	}
	defer top.Close()
	shown := d.dir(id, "data")
	if boxed {
		shown = sandboxData
	}
	if _, err = top.Lstat("data"); errors.Is(err, fs.ErrNotExist) {
		err = moveData(ctx, top, shown)
	}
	if err == nil && boxed { // bubblewrap would follow a link
		_, err = top.Claim("home/"+workspace.AgentData, 0o700)
	}
	return err
}

// moveData takes the conversations out of the workspace, where an earlier version had
// them. The rename is the last step: until then the executor has its old form. A file
// that has a second name in the workspace becomes one of its own, because agents that
// plan write the conversations and not the workspace.
func moveData(ctx context.Context, top *beneath.Dir, shown string) error {
	if err := top.OpenUp("workspace/" + workspace.AgentData); err != nil { // its agent may have closed them
		return err
	}
	files, err := top.Sub("workspace")
	if errors.Is(err, fs.ErrNotExist) {
		return top.Mkdir("data", 0o700)
	}
	if err != nil {
		return err
	}
	defer files.Close()
	st, err := files.Lstat(workspace.AgentData)
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Kind != beneath.Folder {
		return top.Mkdir("data", 0o700)
	}
	if err != nil {
		return err
	}
	data, err := files.Sub(workspace.AgentData)
	if err != nil {
		return err
	}
	defer data.Close()
	if err := data.Part(ctx); err != nil {
		return err
	}
	if err := relink(top, shown); err != nil {
		return err
	}
	// Copies are the server's: what it owns it gives to the agent's user, with all in it.
	if err := data.ChownSelf(os.Geteuid(), os.Getegid()); err != nil {
		return err
	}
	return top.Take(files, workspace.AgentData, "data")
}

// relink leads the names that CLIs have in the agent's home to the new place. What an
// agent made of them is left alone.
func relink(top *beneath.Dir, shown string) error {
	for _, l := range workspace.DataLinks() {
		dir, name, err := top.Parent("home/"+l[0], false)
		if err != nil {
			continue
		}
		if says, _ := dir.Readlink(name); strings.HasSuffix(says, "/workspace/"+l[1]) {
			if err = dir.Remove(name); err == nil {
				err = dir.Symlink(filepath.Join(shown, strings.TrimPrefix(l[1], workspace.AgentData+"/")), name)
			}
		}
		if err := errors.Join(err, dir.Close()); err != nil {
			return err
		}
	}
	return nil
}
