package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/jsonhttp"
	"github.com/tholehq/thole/internal/platform/transcript"
)

func newThreadTranscript(env *Env) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "transcript THREAD", Short: "Write a whole thread as Markdown or JSON",
		Long: "Writes every message, reasoning, command with its output, diff, tool call, question and answer, and what was used.\n" +
			"Of an output that is longer than 64 KiB it has the first MiB and the end. Answers to secret questions are left out.",
		Example: "  thole thread transcript THREAD > thread.md\n  thole thread transcript THREAD --format json | jq .session.title",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if env.JSON && !cmd.Flags().Changed("format") {
				format = string(transcript.JSON)
			}
			f, err := transcript.ParseFormat(format)
			if err != nil {
				return err
			}
			_, err = env.download(cmd.Context(), thole.ThreadID(args[0]), func(id thole.ThreadID) string { return transcript.Path(id) + "?format=" + string(f) }, "transcript")
			return err
		},
	}
	cmd.Flags().StringVar(&format, "format", "md", "md or json")
	return cmd
}

// download writes what the home's socket has of a thread at a path, as it comes: byte for
// byte, but on a terminal with control characters made visible.
func (e *Env) download(ctx context.Context, id thole.ThreadID, path func(thole.ThreadID) string, what string) (int64, error) {
	if !thole.ValidUUID(string(id)) {
		return 0, thole.Errorf(thole.CodeInvalid, "invalid thread id %q", id).WithHint("thole thread list shows them")
	}
	b, err := e.bridge(ctx)
	if err != nil {
		return 0, err
	}
	if b.server != nil {
		return 0, onlyOnServer("this download", "use the page of the server")
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", daemon.Socket(b.home))
	}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://thole"+path(id), nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, thole.Errorf(thole.CodeUnavailable, "read %s: %w", what, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, jsonhttp.ReadError(resp)
	}
	out := e.rawOut
	if f, ok := out.(*os.File); ok && isTerminal(f) {
		out = e.Out
	}
	n, err := io.Copy(out, resp.Body)
	if err != nil {
		return n, thole.Errorf(thole.CodeUnavailable, "the %s broke off: %w", what, err)
	}
	return n, nil
}
