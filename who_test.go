package thole

import "testing"

func TestWho(t *testing.T) {
	for want, a := range map[string]Actor{"agent": AgentActor, "system": SystemActor, string(LocalUser): LocalActor, "u": {User: "u", Via: "token"}} {
		if got := a.Who(); got != want {
			t.Errorf("%+v is %q", a, got)
		}
	}
}
