package lab

import (
	"os"
	"strings"
	"testing"
)

func TestAISDKVersionsArePinned(t *testing.T) {
	script, err := os.ReadFile("../../../scripts/lab")
	if err != nil {
		t.Fatal(err)
	}
	for _, pin := range []string{"AISDK_CLI=" + AISDKCLIVersion, "AISDK_APP=" + AISDKAppVersion} {
		if !strings.Contains(string(script), "\n"+pin+"\n") {
			t.Errorf("scripts/lab does not pin %s", pin)
		}
	}
}
