package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/wire"
)

func newService(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "service", Short: "Install thole up as a service: a systemd user unit, or a launchd agent on macOS"}
	cmd.AddCommand(newServiceInstall(env), newServiceUninstall(env), newServiceStatus(env))
	return cmd
}

func newServiceInstall(env *Env) *cobra.Command {
	var only bool
	cmd := &cobra.Command{
		Use: "install", Short: "Write the unit and print how to start it; nothing is started", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			u, err := env.unit(runtime.GOOS)
			if err != nil {
				return err
			}
			if only {
				_, err := env.Out.Write(u.text)
				return err
			}
			if err := u.write(); err != nil {
				return err
			}
			return env.print(map[string]any{"path": u.path, "next": u.start}, func(w io.Writer) {
				putln(w, "wrote "+u.path+"; type:")
				for _, line := range u.start {
					putln(w, "  "+line)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&only, "print", false, "print the unit and write nothing")
	return cmd
}

func newServiceUninstall(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "uninstall", Short: "Remove the unit and print how to stop it; a running service is not stopped", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			u, err := env.unit(runtime.GOOS)
			if err != nil {
				return err
			}
			if err := u.remove(); err != nil {
				return err
			}
			return env.print(map[string]any{"path": u.path, "next": u.stop}, func(w io.Writer) {
				putln(w, "removed "+u.path+"; if the service runs, type:")
				for _, line := range u.stop {
					putln(w, "  "+line)
				}
			})
		},
	}
}

func newServiceStatus(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show whether the unit is installed and current, and who owns the home", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			u, err := env.unit(runtime.GOOS)
			if err != nil {
				return err
			}
			return env.serviceStatus(cmd.Context(), u)
		},
	}
}

func (e *Env) serviceStatus(ctx context.Context, u unit) error {
	now, err := u.read()
	if err != nil {
		return err
	}
	if now == nil {
		return thole.Errorf(thole.CodeNotFound, "no service is installed at %s", u.path).WithHint("thole service install")
	}
	status := struct {
		Path    string       `json:"path"`
		Current bool         `json:"current"`
		Owner   *wire.Status `json:"owner,omitempty"`
	}{Path: u.path, Current: bytes.Equal(now, u.text)}
	var st wire.Status
	switch err := (&daemonclient.Client{Home: u.home, NoStart: true}).Call(ctx, wire.DaemonStatus, struct{}{}, &st); {
	case err == nil:
		status.Owner = &st
	case thole.CodeOf(err) != thole.CodeUnavailable: // which says that nobody is there
		return err
	}
	return e.print(status, func(w io.Writer) {
		putln(w, "installed at "+u.path)
		if !status.Current {
			putln(w, "it differs from what this thole would write: thole service install writes it again")
		}
		switch {
		case status.Owner == nil:
			putln(w, "nobody owns "+u.home+" now")
		case status.Owner.Role == "daemon":
			putf(w, "%s is owned by an on-demand daemon, process %d; the service takes it over\n", u.home, st.PID)
		default:
			putf(w, "thole %s %s owns %s, process %d\n", st.Role, st.Version, u.home, st.PID)
		}
	})
}

// unitMark is in every unit that we wrote; others are not ours to change.
const unitMark = "Written by thole service install"

func (u unit) read() ([]byte, error) {
	text, err := os.ReadFile(u.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "read the unit: %w", err)
	}
	return text, nil
}

// ours refuses a file that thole did not write.
func (u unit) ours(text []byte) error {
	if text == nil || bytes.Contains(text, []byte(unitMark)) {
		return nil
	}
	return thole.Errorf(thole.CodeConflict, "%s was not written by thole", u.path).WithHint("move it away, or take what you need from: thole service install --print")
}

func (u unit) write() error {
	old, err := u.read()
	if err == nil {
		err = u.ours(old)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(u.path), 0o755); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "write the unit: %w", err)
	}
	if err := atomicfile.Write(u.path, u.text, 0o644); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "write the unit: %w", err)
	}
	return nil
}

func (u unit) remove() error {
	old, err := u.read()
	switch {
	case err != nil:
		return err
	case old == nil:
		return thole.Errorf(thole.CodeNotFound, "no service is installed at %s", u.path)
	}
	if err := u.ours(old); err != nil {
		return err
	}
	for _, path := range append(u.links, u.path) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return thole.Errorf(thole.CodeUnavailable, "remove the unit: %w", err)
		}
	}
	return nil
}
