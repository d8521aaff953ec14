package wire

import (
	"time"

	"github.com/tholehq/thole/internal/toolchain"
)

// ToolsVariable is the variable in executord's environment that holds Tools, as JSON:
// a command line is for everyone to read, and these may be secrets.
const ToolsVariable = "THOLE_TOOLS"

// Tools is what of the user's shell the programs of an executor have.
type Tools struct {
	// Env are variables besides those that executord sets itself.
	Env map[string]string `json:"env,omitempty"`
	// Seeds are laid in the agent's home where nothing is at their paths.
	Seeds []toolchain.Seed `json:"seeds,omitempty"`
	Setup Setup            `json:"setup"`
}

// Setup is when a workspace is set up as its repository says.
type Setup struct {
	// Auto: before its first agent. A user may ask for it at any time.
	Auto    bool          `json:"auto,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`
}
