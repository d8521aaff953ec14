package lab

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// CodexSDKVersion is the version of the official Codex SDK; scripts/lab gets the same one.
const CodexSDKVersion = "0.163.0"

// CodexSDK returns node and the directory whose node_modules has @openai/codex-sdk.
func CodexSDK(t testing.TB) (node, dir string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		Need(t, "codex-sdk", fmt.Errorf("node is not installed"))
		return "", ""
	}
	found, err := cached("codex-sdk-"+CodexSDKVersion+"/node_modules/@openai/codex-sdk", "codex-sdk")
	Need(t, "codex-sdk", err)
	use(t, "codex-sdk", CodexSDKVersion)
	return node, filepath.Dir(filepath.Dir(filepath.Dir(found)))
}
