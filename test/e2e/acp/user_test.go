package acp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tholehq/thole/internal/testkit/lab"
)

// An editor of root and one of an ordinary user have an agent work in their directory. The
// files are theirs.
func TestEveryUser(t *testing.T) {
	lab.EveryUser(t, func(t *testing.T) {
		r := newRig(t)
		cmd := r.acp("--provider", "test", "--profile", "full")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		id := 0
		call := func(method string, params, result any) {
			t.Helper()
			id++
			raw, _ := json.Marshal(obj{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
			if _, err := fmt.Fprintf(in, "%s\n", raw); err != nil {
				t.Fatal(err)
			}
			for {
				line, err := lines.ReadBytes('\n')
				if err != nil {
					t.Fatalf("%s: %v", method, err)
				}
				var m struct {
					ID     int
					Method string
					Result json.RawMessage
					Error  any
				}
				if err := json.Unmarshal(line, &m); err != nil || m.Error != nil {
					t.Fatalf("%s: %v: %s", method, err, line)
				}
				if m.ID == id && m.Method == "" {
					if err := json.Unmarshal(m.Result, result); err != nil {
						t.Fatal(err)
					}
					return
				}
			}
		}
		var none obj
		call("initialize", obj{"protocolVersion": 1}, &none)
		var opened struct{ SessionID string }
		call("session/new", obj{"cwd": r.dir, "mcpServers": []any{}}, &opened)
		var end struct{ StopReason string }
		call("session/prompt", obj{"sessionId": opened.SessionID, "prompt": []any{obj{"type": "text", "text": "sim: write made.txt by the agent"}}}, &end)
		if end.StopReason != "end_turn" {
			t.Errorf("the prompt ended with %q", end.StopReason)
		}
		info, err := os.Stat(filepath.Join(r.dir, "made.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; os.Getuid() != 0 && int(uid) != os.Getuid() {
			t.Errorf("the file belongs to user %d", uid)
		}
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("after the editor left: %v", err)
		}
	})
}
