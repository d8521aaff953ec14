package workspace

import "github.com/tholehq/thole/internal/provider/table"

// Names that belong to the platform: mount points and what the CLIs' data is
// linked to. An agent can put anything there. It would not be followed, so what
// it put there would keep every later restore from succeeding. The platform
// therefore takes the name back: what stood there is moved aside, under a
// name that says so, and stays part of the thread's files.

// DataLinks are the CLIs' data directories: names in the home, and where in the
// tree they lead.
func DataLinks() (out [][2]string) {
	for _, c := range table.CLIs {
		if c.Home != "" {
			out = append(out, [2]string{c.Home, AgentData + "/" + c.Data})
		}
	}
	return out
}

// Owned are the platform's directories in a workspace with these mount points.
func Owned(mounts []MountPoint) (out []string) {
	for _, m := range mounts {
		if rel, err := Relative(m.TargetPath); err == nil && rel != "" {
			out = append(out, rel)
		}
	}
	for _, l := range DataLinks() {
		out = append(out, l[1])
	}
	return out
}

// ClaimRequest names directories of the platform, from the workspace down.
type ClaimRequest struct {
	Paths []string `json:"paths"`
}

// ClaimResult says what had to be moved.
type ClaimResult struct {
	Moved []Moved `json:"moved,omitempty"`
}

// Moved is something that stood at a name of the platform and is called otherwise
// now.
type Moved struct {
	From string `json:"from"`
	To   string `json:"to"`
}
