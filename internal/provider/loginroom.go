package provider

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider/table"
)

// LoginRoom is a home directory in which a CLI's own login runs once. Nobody else can
// enter it, and it is removed at the end; what a kill leaves, SweepLoginRooms removes.
// The lock on the directory ends with the process that holds it.
type LoginRoom struct {
	dir  string
	held *os.File
}

// OpenLoginRoom makes a room below dir.
func OpenLoginRoom(dir string) (*LoginRoom, error) {
	fail := func(err error) (*LoginRoom, error) {
		return nil, thole.Errorf(thole.CodeUnavailable, "make a directory to log in from: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fail(err)
	}
	for range 5 { // a sweep may take a new one before it is held
		path, err := os.MkdirTemp(dir, "room-") // mode 0700
		if err != nil {
			return fail(err)
		}
		if held := holdRoom(path); held != nil {
			return &LoginRoom{path, held}, nil
		}
	}
	return fail(errors.New("others remove it"))
}

// holdRoom locks a directory that is still there; nil: another process has it.
func holdRoom(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		mine, err := f.Stat()
		now, err2 := os.Lstat(path)
		if err == nil && err2 == nil && os.SameFile(mine, now) {
			return f
		}
	}
	f.Close()
	return nil
}

// SweepLoginRooms removes the rooms below dir that no process holds.
func SweepLoginRooms(dir string) error {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range all {
		path := filepath.Join(dir, e.Name())
		if f := holdRoom(path); f != nil {
			err = errors.Join(err, os.RemoveAll(path), f.Close())
		}
	}
	return err
}

// passed are the variables of the user that a login gets, besides the home: how to
// reach the network and how to show a page. No key is among them.
var passed = []string{
	"PATH", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "COLORTERM",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	"BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
}

// Command is the CLI's own login, in the room.
func (r *LoginRoom) Command(ctx context.Context, providerName, binary string, args []string, environ []string) (*exec.Cmd, error) {
	own := table.Of(providerName).Login.Command
	if len(own) == 0 {
		return nil, thole.Errorf(thole.CodeUnsupported, "%s has no login of its own", providerName).WithHint("thole secret set NAME --provider %s", providerName)
	}
	cmd := exec.CommandContext(ctx, binary, append(slices.Clone(own), args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir = r.dir
	cmd.Env = []string{"HOME=" + r.dir}
	for _, v := range environ {
		if name, _, _ := strings.Cut(v, "="); slices.Contains(passed, name) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd, nil
}

// Login reads the login file that the CLI left: a file of the room and of no other place.
func (r *LoginRoom) Login(providerName string) ([]byte, error) {
	path := LoginFile(providerName)
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(filepath.FromSlash(path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		if st, stat := f.Stat(); stat != nil || !st.Mode().IsRegular() {
			err = errors.Join(fs.ErrInvalid, f.Close())
		}
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "%s left no login at ~/%s", providerName, path).WithHint("go through its login to the end; or set what it printed with: thole secret set %s --provider %s", providerName, providerName)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLogin))
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "read the login of %s: %w", providerName, err)
	}
	return data, nil
}

// Close removes the room.
func (r *LoginRoom) Close() error { return errors.Join(os.RemoveAll(r.dir), r.held.Close()) }
