package lab

import (
	"fmt"
	"path/filepath"
	"testing"
)

// Versions of the Agent Client Protocol's own library, of the adapter of codex, of a
// client of the protocol, and of the node that they need; scripts/lab gets the same ones.
const (
	ACPVersion      = "2.4.0"  // @agentclientprotocol/sdk
	ACPCodexVersion = "2.6.0"  // @agentclientprotocol/codex-acp
	ACPXVersion     = "0.19.1" // acpx
)

// ACP returns a node that is new enough and the directory whose node_modules has the
// library of the Agent Client Protocol with its schema, the adapter of codex and acpx.
func ACP(t testing.TB) (node, dir string) {
	t.Helper()
	node, err := cached(fmt.Sprintf("acp-%s-%s-%s/node_modules/node-linux-*/bin/node", ACPVersion, ACPCodexVersion, ACPXVersion), "acp")
	Need(t, "acp", err)
	use(t, "acp", ACPVersion+"+"+ACPCodexVersion+"+"+ACPXVersion)
	return node, filepath.Join(filepath.Dir(node), "../../..")
}
