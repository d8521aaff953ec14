package workspace

import (
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
)

// Layer is one of the layers a workspace is made of, from the bottom up.
type Layer string

const (
	RegistryBase     Layer = "registry_base"
	SessionOverlay   Layer = "session_overlay"
	KnowledgeOverlay Layer = "knowledge_overlay"
	UserOverlay      Layer = "user_overlay"
)

// RestorePlan is a manifest compiled for one thread: what is laid where, in
// order.
type RestorePlan struct {
	AppID             string         `json:"appId"`
	RuntimeVersion    string         `json:"runtimeVersion"`
	WorkspaceS3Prefix string         `json:"workspaceS3Prefix"`
	ConflictPolicy    ConflictPolicy `json:"conflictPolicy"`
	ProtectedPaths    []string       `json:"protectedPaths"`
	Entries           []PlanEntry    `json:"entries"`
}

// PlanEntry is one layer of a plan.
type PlanEntry struct {
	Layer      Layer  `json:"layer"`
	FromPrefix string `json:"fromPrefix"`
	ToPath     string `json:"toPath"`
	Optional   bool   `json:"optional"`
}

// Prefixes are the object prefixes of a thread, built from ids.
type Prefixes struct {
	App, Project, User, Thread string
}

// PrefixesOf builds them.
func PrefixesOf(o thole.Owner, id thole.ThreadID) (Prefixes, error) {
	app, err := objects.Key("app", string(o.App))
	if err != nil {
		return Prefixes{}, err
	}
	project, err := objects.Key("project", string(o.Project))
	if err != nil {
		return Prefixes{}, err
	}
	user, err := objects.Key("user", string(o.User))
	if err != nil {
		return Prefixes{}, err
	}
	thread, err := objects.Key("session", string(id), "workspace")
	if err != nil {
		return Prefixes{}, err
	}
	p := Prefixes{App: app + "/"}
	p.Project = p.App + project + "/"
	p.User = p.Project + user + "/"
	p.Thread = p.User + thread + "/"
	return p, nil
}

// Compile makes the plan of a manifest for one thread.
func Compile(m Manifest, p Prefixes) (RestorePlan, error) {
	if err := m.Validate(); err != nil {
		return RestorePlan{}, err
	}
	plan := RestorePlan{AppID: m.AppID, RuntimeVersion: m.RuntimeVersion, WorkspaceS3Prefix: p.Thread,
		ConflictPolicy: m.ConflictPolicy, ProtectedPaths: m.ProtectedPaths}
	add := func(l Layer, from, to string, optional bool) {
		plan.Entries = append(plan.Entries, PlanEntry{l, from, to, optional})
	}
	if m.WorkspaceTemplatePrefix != "" {
		add(RegistryBase, strings.TrimSuffix(m.WorkspaceTemplatePrefix, "/")+"/", Root, false)
	}
	add(SessionOverlay, p.Thread, Root, true)
	for _, mp := range m.MountPoints {
		switch mp.Name {
		case MountAppKB:
			add(KnowledgeOverlay, p.App+"kb/", mp.TargetPath, true)
		case MountProjectKB:
			add(KnowledgeOverlay, p.Project+"kb/", mp.TargetPath, true)
		}
	}
	for _, mp := range m.MountPoints {
		if mp.Name == MountUserFiles {
			add(UserOverlay, p.User+"files/", mp.TargetPath, true)
		}
	}
	return plan, nil
}

// ReadOnlyMounts are the paths that snapshots leave out: they come from elsewhere
// on every restore.
func ReadOnlyMounts(mounts []MountPoint) []string {
	var out []string
	for _, m := range mounts {
		if rel, err := Relative(m.TargetPath); m.ReadOnly && err == nil {
			out = append(out, rel)
		}
	}
	return out
}
