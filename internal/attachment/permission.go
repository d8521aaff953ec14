package attachment

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// PermissionSnapshot is what a session allows its turns, as an app-server reported it.
type PermissionSnapshot struct {
	Approval bool     `json:"approval"` // a turn may ask the user
	Network  bool     `json:"network"`
	Write    bool     `json:"write"`
	Roots    []string `json:"roots,omitempty"` // writable ones besides the directory, cleaned
	All      bool     `json:"all,omitempty"`   // writes anywhere
	Policy   string   `json:"policy"`          // the server's own words
	Sandbox  string   `json:"sandbox"`
	Profile  string   `json:"profile,omitempty"`
}

// Settings is the part of an app-server's answer that permissions are read from.
type Settings struct {
	ApprovalPolicy json.RawMessage `json:"approvalPolicy"`
	Sandbox        json.RawMessage `json:"sandbox"`
	Profile        *Profile        `json:"activePermissionProfile"`
}

// Profile names a set of permissions of the server.
type Profile struct {
	ID string `json:"id"`
}

// Read makes a snapshot. What it does not understand it refuses: an unknown
// sandbox or profile may allow anything.
func Read(s Settings) (PermissionSnapshot, error) {
	var box struct {
		Type          string          `json:"type"`
		NetworkAccess json.RawMessage `json:"networkAccess"`
		WritableRoots []string        `json:"writableRoots"`
	}
	if err := strictjson.Unmarshal(s.Sandbox, &box); err != nil {
		return PermissionSnapshot{}, thole.Errorf(thole.CodeUnsupported, "server did not report its sandbox: %w", err)
	}
	out := PermissionSnapshot{Policy: strings.Trim(string(s.ApprovalPolicy), `"`), Sandbox: box.Type}
	if len(s.ApprovalPolicy) == 0 || string(s.ApprovalPolicy) == "null" {
		return out, thole.Errorf(thole.CodeUnsupported, "server did not report its approval policy")
	}
	out.Approval = out.Policy != "never"
	network := string(box.NetworkAccess)
	out.Network = network == "true" || network == `"enabled"`
	switch box.Type {
	case "dangerFullAccess":
		out.Network, out.Write, out.All = true, true, true
	case "externalSandbox":
		out.Write, out.All = true, true // what is outside is unknown: assume everything
	case "workspaceWrite":
		out.Write = true
	case "readOnly":
	default:
		return out, thole.Errorf(thole.CodeUnsupported, "unknown sandbox %q", box.Type)
	}
	for _, r := range box.WritableRoots {
		clean, err := cleanRoot(r)
		if err != nil {
			return out, err
		}
		out.Roots = append(out.Roots, clean)
	}
	slices.Sort(out.Roots)
	out.Roots = slices.Compact(out.Roots)
	if s.Profile != nil {
		out.Profile = s.Profile.ID
		switch out.Profile {
		case ":read-only", ":workspace", ":danger-full-access":
		default:
			return out, thole.Errorf(thole.CodeUnsupported, "permission profile %q is not a built-in one: what it allows cannot be seen", out.Profile)
		}
	}
	return out, nil
}

// cleanRoot refuses a root that could lead elsewhere when it is resolved.
func cleanRoot(r string) (string, error) {
	if !path.IsAbs(r) || slices.Contains(strings.Split(r, "/"), "..") {
		return "", thole.Errorf(thole.CodeForbidden, "writable root %q is not a plain absolute path", r)
	}
	return path.Clean(r), nil
}

// Beyond lists the dimensions in which now allows more than the cap.
func (limit PermissionSnapshot) Beyond(now PermissionSnapshot) []string {
	var out []string
	more := func(name string, a, b bool) {
		if b && !a {
			out = append(out, name)
		}
	}
	more("approval", limit.Approval, now.Approval)
	more("network", limit.Network, now.Network)
	more("write_access", limit.Write, now.Write)
	if limit.Write && now.Write && !limit.All {
		if now.All {
			out = append(out, "write_everywhere")
		} else if !covered(limit.Roots, now.Roots) {
			out = append(out, "writable_roots")
		}
	}
	return out
}

func covered(limit, now []string) bool {
	for _, r := range now {
		if !slices.ContainsFunc(limit, func(l string) bool { return r == l || l == "/" || strings.HasPrefix(r, l+"/") }) {
			return false
		}
	}
	return true
}

// Effective is what a delivered turn may do: the cap and the present, whichever
// is less in each dimension.
func (limit PermissionSnapshot) Effective(now PermissionSnapshot) PermissionSnapshot {
	return PermissionSnapshot{
		Approval: limit.Approval && now.Approval, Network: limit.Network && now.Network, Write: limit.Write && now.Write,
		Policy: now.Policy, Sandbox: now.Sandbox, Profile: now.Profile,
	}
}

// Equal reports whether two snapshots allow the same in the same words.
func (limit PermissionSnapshot) Equal(now PermissionSnapshot) bool {
	return slices.Equal(limit.Roots, now.Roots) && limit.key() == now.key()
}

func (limit PermissionSnapshot) key() string {
	return fmt.Sprint(limit.Approval, limit.Network, limit.Write, limit.All, limit.Policy, limit.Sandbox, limit.Profile)
}

// String is a snapshot in one line, for ledgers.
func (limit PermissionSnapshot) String() string {
	return fmt.Sprintf("approval=%t network=%t write_access=%t roots=%v %s/%s", limit.Approval, limit.Network, limit.Write, limit.Roots, limit.Policy, limit.Sandbox)
}

// allows lists, by their public names, what a session may do.
func (limit PermissionSnapshot) allows() []string {
	var out []string
	for name, on := range map[string]bool{"approval": limit.Approval, "network": limit.Network, "write_access": limit.Write} {
		if on {
			out = append(out, "session_allows_"+name+"=true")
		}
	}
	slices.Sort(out)
	return out
}

// Wish is what a user says of one dimension.
type Wish string

const (
	Auto Wish = "auto"
	Yes  Wish = "true"
	No   Wish = "false"
)

// Wishes are the three dimensions of a session's profile.
type Wishes struct {
	Approval Wish `json:"approval"`
	Network  Wish `json:"network"`
	Write    Wish `json:"write_access"`
	// Pin: a delivery into a session that allows more than its cap tightens it for
	// the time of the delivered turn, instead of waiting.
	Pin bool `json:"pin,omitempty"`
}

// Check refuses unknown words; an empty one is Auto.
func (w Wishes) Check() (Wishes, error) {
	for name, p := range map[string]*Wish{"approval": &w.Approval, "network": &w.Network, "write-access": &w.Write} {
		switch *p {
		case "":
			*p = Auto
		case Auto, Yes, No:
		default:
			return w, thole.Errorf(thole.CodeInvalid, "--session-allows-%s %q is not auto, true or false", name, *p)
		}
	}
	return w, nil
}

// Bound is the cap of a session that was first seen as now: what the user said,
// else what it allows.
func (w Wishes) Bound(now PermissionSnapshot) PermissionSnapshot {
	set := func(p *bool, v Wish) {
		if v != Auto && v != "" {
			*p = v == Yes
		}
	}
	set(&now.Approval, w.Approval)
	set(&now.Network, w.Network)
	set(&now.Write, w.Write)
	return now
}
