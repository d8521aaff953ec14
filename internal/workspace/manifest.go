package workspace

import (
	"context"
	"errors"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/objects"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// Root is how manifests and plans call the workspace.
const Root = "/workspace"

// ConflictPolicy says whose file stays when two layers have the same one.
type ConflictPolicy string

const (
	KeepSession    ConflictPolicy = "keep_session"    // what the thread had
	PreferRegistry ConflictPolicy = "prefer_registry" // what the app brings
	Merge          ConflictPolicy = "merge"           // the newer one
)

// CleanupAction is what a cleanup rule does.
type CleanupAction string

const (
	RemoveIfExists   CleanupAction = "remove_if_exists"
	TruncateIfExists CleanupAction = "truncate_if_exists"
)

// The mount points there are.
const (
	MountAppKB     = "app_kb"
	MountProjectKB = "project_kb"
	MountUserFiles = "user_files"
	MountAgentData = "agent_data"
)

// Manifest is an app's runtime recipe. One version never changes.
type Manifest struct {
	AppID          string `json:"appId"`
	RuntimeVersion string `json:"runtimeVersion"`
	// WorkspaceTemplatePrefix is the object prefix of the first layer, "" for none.
	WorkspaceTemplatePrefix string         `json:"workspaceTemplatePrefix"`
	RequiredPaths           []string       `json:"requiredPaths"`
	SeedFiles               []SeedFile     `json:"seedFiles"`
	MountPoints             []MountPoint   `json:"mountPoints"`
	ConflictPolicy          ConflictPolicy `json:"conflictPolicy"`
	ProtectedPaths          []string       `json:"protectedPaths"`
	CleanupRules            []CleanupRule  `json:"cleanupRules"`
}

// SeedFile is written once, when it is not there.
type SeedFile struct {
	From          string `json:"from"` // object key, or with a slash at its end a prefix of several
	To            string `json:"to"`
	IfMissingOnly bool   `json:"ifMissingOnly"`
}

// MountPoint is where files from elsewhere lie. What is read-only is laid again on
// every restore and not synced.
type MountPoint struct {
	Name       string `json:"name"`
	TargetPath string `json:"targetPath"`
	ReadOnly   bool   `json:"readOnly"`
}

// CleanupRule removes leftovers before agents run.
type CleanupRule struct {
	Action CleanupAction `json:"action"`
	Path   string        `json:"path"`
}

// ManifestSource finds the manifest of an app. An empty version asks for the
// current one; the answer names the version it is, and asking for that returns
// the same manifest for ever.
type ManifestSource interface {
	Manifest(ctx context.Context, app thole.AppID, version string) (Manifest, error)
}

// BuiltIn is the manifest of apps that have none: no template, knowledge and
// user files at their usual places.
type BuiltIn struct{}

// builtInVersion names this content; changed content needs another name.
const builtInVersion = "builtin-1"

// Manifest implements ManifestSource.
func (BuiltIn) Manifest(_ context.Context, app thole.AppID, version string) (Manifest, error) {
	if version != "" && version != builtInVersion {
		return Manifest{}, thole.Errorf(thole.CodeNotFound, "app %s has no runtime version %q", app, version)
	}
	protected := []string{Root + "/" + AgentData}
	for _, c := range table.CLIs {
		if c.Project != "" {
			protected = append(protected, Root+"/"+c.Project)
		}
	}
	return Manifest{
		AppID: string(app), RuntimeVersion: builtInVersion, ConflictPolicy: KeepSession,
		RequiredPaths:  []string{Root + "/" + AgentData},
		ProtectedPaths: protected,
		MountPoints: []MountPoint{
			{MountAppKB, Root + "/.kb/app", true}, {MountProjectKB, Root + "/.kb/project", true},
			{MountUserFiles, Root + "/.user-files", false}, {MountAgentData, Root + "/" + AgentData, false},
		},
	}, nil
}

// ParseManifest reads and checks a manifest. Unknown fields are refused: a
// misspelt protection would protect nothing.
func ParseManifest(data []byte) (Manifest, error) {
	var m Manifest
	if err := strictjson.UnmarshalKnown(data, &m); err != nil {
		return m, thole.Errorf(thole.CodeInvalid, "read manifest: %w", err)
	}
	if m.ConflictPolicy == "" {
		m.ConflictPolicy = KeepSession
	}
	return m, m.Validate()
}

// Validate names everything that is wrong with a manifest.
func (m Manifest) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, thole.Errorf(thole.CodeInvalid, format, args...))
		}
	}
	path := func(field, p string, rootToo bool) string {
		rel, err := Relative(p)
		check(err == nil && (rel != "" || rootToo), "%s: %q is not a clean path below %s", field, p, Root)
		return rel
	}
	_, err := objects.Key(m.AppID)
	check(err == nil, "appId: %q cannot be part of an object key", m.AppID)
	_, err = objects.Key(m.RuntimeVersion)
	check(err == nil, "runtimeVersion: %q cannot be part of an object key", m.RuntimeVersion)
	if p := m.WorkspaceTemplatePrefix; p != "" {
		check(m.owns(p), "workspaceTemplatePrefix: %q is not below app/%s/registry/", p, m.AppID)
	}
	check(m.ConflictPolicy == KeepSession || m.ConflictPolicy == PreferRegistry || m.ConflictPolicy == Merge, "conflictPolicy: %q is unknown", m.ConflictPolicy)
	for _, p := range m.RequiredPaths {
		path("requiredPaths", p, true)
	}
	protected := []string{AgentData} // what agents remember is no manifest's to remove
	for _, p := range m.ProtectedPaths {
		protected = append(protected, path("protectedPaths", p, false))
	}
	for _, s := range m.SeedFiles {
		check(m.owns(s.From), "seedFiles: %q is not below app/%s/registry/", s.From, m.AppID)
		path("seedFiles", s.To, strings.HasSuffix(s.From, "/"))
	}
	names := map[string]bool{}
	var mounts, readOnly []string
	for _, mp := range m.MountPoints {
		known := mp.Name == MountAppKB || mp.Name == MountProjectKB || mp.Name == MountUserFiles || mp.Name == MountAgentData
		check(known, "mountPoints: %q is unknown", mp.Name)
		check(!names[mp.Name], "mountPoints: %q is there twice", mp.Name)
		names[mp.Name] = true
		rel := path("mountPoints", mp.TargetPath, false)
		check(mp.Name != MountAgentData || rel == AgentData && !mp.ReadOnly, "mountPoints: agent_data is always writable and at %s/%s", Root, AgentData)
		check(!mp.ReadOnly || !Overlaps(rel, protected), "mountPoints: %q is read-only and meets a protected path", mp.TargetPath)
		// What is read-only is one source's alone: laying it would take the other's away.
		check(!Overlaps(rel, readOnly) && (!mp.ReadOnly || !Overlaps(rel, mounts)), "mountPoints: %q meets another, and one of them is read-only", mp.TargetPath)
		if mounts = append(mounts, rel); mp.ReadOnly {
			readOnly = append(readOnly, rel)
		}
	}
	for _, c := range m.CleanupRules {
		check(c.Action == RemoveIfExists || c.Action == TruncateIfExists, "cleanupRules: action %q is unknown", c.Action)
		check(!Overlaps(path("cleanupRules", c.Path, false), protected), "cleanupRules: %q meets a protected path", c.Path)
	}
	return errors.Join(errs...)
}

// owns reports whether a key or prefix is the app's own: a manifest cannot hand
// out the objects of others.
func (m Manifest) owns(key string) bool {
	rest, ok := strings.CutPrefix(key, "app/"+m.AppID+"/registry/")
	return ok && objects.CheckKey(strings.TrimSuffix(rest, "/")) == nil
}

// Overlaps reports whether one path contains the other.
func Overlaps(path string, others []string) bool {
	for _, o := range others {
		if beneath.Within(path, o) || beneath.Within(o, path) {
			return true
		}
	}
	return false
}

// Relative turns /workspace/a/b into a/b and /workspace into "".
func Relative(p string) (string, error) {
	if p == Root || p == Root+"/" {
		return "", nil
	}
	rel, ok := strings.CutPrefix(p, Root+"/")
	if !ok {
		return "", thole.Errorf(thole.CodeInvalid, "%q is not below %s", p, Root)
	}
	rel = strings.TrimSuffix(rel, "/")
	return rel, beneath.CheckPath(rel)
}
