package attachment

import (
	"encoding/json"
)

// Pin is what a thread's settings were before a delivery tightened them, and the
// epoch in which it did.
type Pin struct {
	Before Settings `json:"before"`
	During Settings `json:"during"`
	Epoch  int64    `json:"epoch"`
}

// Update is the wire's form of giving a thread these settings.
func (s Settings) Update() map[string]any {
	p := map[string]any{"approvalPolicy": s.ApprovalPolicy}
	if s.Profile != nil {
		p["permissions"] = s.Profile.ID
	} else {
		p["sandboxPolicy"] = s.Sandbox
	}
	return p
}

// Tighten returns the settings of a session so changed that they allow nothing
// beyond the cap. What the wire cannot express exactly becomes tighter.
func (limit PermissionSnapshot) Tighten(s Settings, now PermissionSnapshot) (Settings, error) {
	e := limit.Effective(now)
	out := Settings{ApprovalPolicy: s.ApprovalPolicy}
	if !e.Approval {
		out.ApprovalPolicy = json.RawMessage(`"never"`)
	}
	sandbox := map[string]any{"type": "readOnly", "networkAccess": e.Network}
	if e.Write {
		roots := []string{}
		for _, r := range now.Roots {
			if limit.All || covered(limit.Roots, []string{r}) {
				roots = append(roots, r)
			}
		}
		if now.All {
			roots = append(roots, limit.Roots...)
		}
		sandbox = map[string]any{
			"type": "workspaceWrite", "networkAccess": e.Network, "writableRoots": roots, "excludeTmpdirEnvVar": true, "excludeSlashTmp": true,
		}
	}
	var err error
	out.Sandbox, err = json.Marshal(sandbox)
	return out, err
}
