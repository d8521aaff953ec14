package cli

import (
	"io"
	"os"
	"strings"
)

const (
	strictSafe = "strict-safe"
	trustedAll = "trusted-all"
)

// askTrust asks, once and before the terminal begins, whether results may become turns of
// this session with the permissions that it starts with; these are then its cap. Who cannot
// be asked, or says nothing, has agreed to nothing.
func (e *Env) askTrust() string {
	in, ok := e.In.(*os.File)
	out, ok2 := e.rawErr.(*os.File)
	if !ok || !ok2 || !isTerminal(in) || !isTerminal(out) {
		return strictSafe
	}
	putf(e.Err, "thole: results of jobs can become turns in this session without asking you each time. Such a turn may do\n"+
		"what the session allows when it starts, and never more. Deliver results so? [y/N] ")
	switch strings.ToLower(strings.TrimSpace(readLine(in))) {
	case "y", "yes":
		return trustedAll
	}
	putln(e.Err, "thole: only results that need nothing go into a session that may do nothing; others are held until you\n"+
		"release them: thole batch list --held, thole batch deliver BATCH")
	return strictSafe
}

// readLine takes one line and nothing after it: that is for the terminal.
func readLine(r io.Reader) string {
	var line []byte
	b := make([]byte, 1)
	for len(line) < 1024 {
		if n, err := r.Read(b); n == 0 || err != nil || b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	return string(line)
}
