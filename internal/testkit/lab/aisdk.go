package lab

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// Versions of the AI SDK providers; scripts/lab gets the same ones.
const (
	AISDKCLIVersion = "2.2.1" // ai-sdk-provider-codex-cli
	AISDKAppVersion = "1.1.7" // ai-sdk-provider-codex-app-server
)

// AISDK returns node and the directory whose node_modules has both AI SDK
// providers that drive a Codex app-server.
func AISDK(t testing.TB) (node, dir string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		Need(t, "aisdk", fmt.Errorf("node is not installed"))
		return "", ""
	}
	found, err := cached(fmt.Sprintf("aisdk-%s-%s/node_modules/ai-sdk-provider-codex-cli", AISDKCLIVersion, AISDKAppVersion), "aisdk")
	Need(t, "aisdk", err)
	use(t, "aisdk", AISDKCLIVersion+"+"+AISDKAppVersion)
	return node, filepath.Dir(filepath.Dir(found))
}
