package cli

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/procid"
	"github.com/tholehq/thole/internal/strictjson"
)

func newCodexAttach(env *Env) *cobra.Command {
	var p wire.SessionOpenParams
	cmd := &cobra.Command{
		Use:   "attach --thread-id ID [--address ADDR --server-pid PID]",
		Short: "Deliver into a thread of the Codex daemon that ordinary terminals share",
		Long: "Without --address the running Codex daemon of this Codex home is used, as every plain codex does. An explicit\n" +
			"server is named by its address. The process that listens on a unix socket is known from the socket; of one that\n" +
			"listens on a loopback port it must be named, and is refused if it does not hold that port.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if p.CodexHome, err = codexHome(); err != nil {
				return err
			}
			if p.Dir, err = os.Getwd(); err != nil {
				return thole.Errorf(thole.CodeInvalid, "working directory: %w", err)
			}
			p.Kind = "endpoint"
			if p.Address == "" {
				p.Kind = "shared"
				p.Address = "unix://" + filepath.Join(p.CodexHome, "app-server-control", "app-server-control.sock")
				if p.ServerPID, err = sharedDaemon(p.CodexHome); err != nil {
					return err
				}
			}
			var s wire.CodexSession
			if err := env.ask(cmd.Context(), wire.SessionOpen, p, &s); err != nil {
				return err
			}
			return env.inspectSession(cmd.Context(), s.ID)
		},
	}
	cmd.Flags().StringVar(&p.ThreadID, "thread-id", "", "the thread (needed)")
	cmd.Flags().StringVar(&p.Address, "address", "", "unix://PATH or ws://HOST:PORT of a Codex app-server")
	cmd.Flags().IntVar(&p.ServerPID, "server-pid", 0, "process of the app-server at --address: needed for ws://, refused if another one serves it")
	_ = cmd.MarkFlagRequired("thread-id")
	sessionFlags(cmd, &p)
	return cmd
}

// sharedDaemon is the process of the user's Codex daemon, by the file it writes.
func sharedDaemon(home string) (int, error) {
	b, err := os.ReadFile(filepath.Join(home, "app-server-daemon", "daemon.pid"))
	if err != nil {
		return 0, thole.Errorf(thole.CodeUnavailable, "no Codex daemon runs for %s: %w", home, err).WithHint("start codex, or: codex app-server daemon start")
	}
	var d struct {
		PID      int `json:"pid"`
		Identity struct {
			Boot  string      `json:"bootId"`
			Start json.Number `json:"startTicks"`
		} `json:"processIdentity"`
	}
	if err := strictjson.Unmarshal(b, &d); err != nil || d.PID == 0 {
		return 0, thole.Errorf(thole.CodeUnsupported, "the Codex daemon of %s does not report its process", home)
	}
	// The file outlives a killed daemon, and its pid may be another process's now.
	id := procid.Identity{PID: d.PID, Boot: d.Identity.Boot, Start: d.Identity.Start.String()}
	if err := id.Alive(); err != nil {
		return 0, thole.Errorf(thole.CodeUnavailable, "the Codex daemon of %s does not run: %w", home, err).WithHint("start codex, or: codex app-server daemon start")
	}
	return d.PID, nil
}
