package workspace

import (
	"context"

	"github.com/tholehq/thole/internal/objects"
)

// Side is the end of the work that is near the files: executord while the
// executor runs, this process when it is stopped and its directory is here. It
// moves bytes by links and never decides what a snapshot is. Every call may be
// repeated.
type Side interface {
	Restore(ctx context.Context, req RestoreRequest) (RestoreResult, error)
	Link(ctx context.Context) error
	Validate(ctx context.Context, req ValidateRequest) error
	Scan(ctx context.Context, req ScanRequest) (ScanResult, error)
	Push(ctx context.Context, req PushRequest) (PushResult, error)
	Compare(ctx context.Context, req CompareRequest) error
	// Claim takes names of the platform back from whatever stands there.
	Claim(ctx context.Context, req ClaimRequest) (ClaimResult, error)
}

// TreeLink is a stored tree and where to read it.
type TreeLink struct {
	Sum  objects.Sum  `json:"sum"`
	Link objects.Link `json:"link"`
}

// ScanRequest asks what the workspace holds. Base is the tree of the last
// snapshot: what it has need not be stored again.
type ScanRequest struct {
	Reason   string    `json:"reason"`
	Base     *TreeLink `json:"base,omitempty"`
	Template string    `json:"template,omitempty"`
	// Exclude are paths that come from elsewhere on every restore.
	Exclude []string `json:"exclude,omitempty"`
	// Quiet promises that nobody writes: a file that changes is then an error, and
	// databases are taken as the files they are.
	Quiet bool `json:"quiet,omitempty"`
	// Copy makes large files be copied aside before they are pushed: for when
	// pushing them in place failed because they changed.
	Copy bool `json:"copy,omitempty"`
}

// ScanResult is a tree ready to be pushed.
type ScanResult struct {
	Tree     objects.Sum `json:"tree"`
	TreeSize int64       `json:"tree_size"`
	// New are the objects to push, Old those of the base that the tree still uses.
	New       []Object `json:"new"`
	Old       []string `json:"old"`
	Files     int      `json:"files"`
	Bytes     int64    `json:"bytes"`
	Unsettled []string `json:"unsettled,omitempty"`
	Skipped   int      `json:"skipped,omitempty"` // sockets, pipes, devices
}

// PushRequest gives the links for what the last scan found.
type PushRequest struct {
	Tree TreeLink `json:"tree"`
	// Links has one per object, or per part of one, in order.
	Links map[string][]objects.Link `json:"links"`
}

// PushResult says how it went. Changed names objects whose files are not what
// they were at the scan.
type PushResult struct {
	Changed []string                  `json:"changed,omitempty"`
	Parts   map[string][]objects.Part `json:"parts,omitempty"`
}

// RestoreRequest is a plan with what its entries need to be carried out.
type RestoreRequest struct {
	Plan RestorePlan `json:"plan"`
	// Layers belong to the plan's entries by index.
	Layers  []LayerContent `json:"layers"`
	Seeds   []SeedContent  `json:"seeds,omitempty"`
	Cleanup []CleanupRule  `json:"cleanup,omitempty"`
	Mounts  []MountPoint   `json:"mounts,omitempty"`
}

// LayerContent is what a layer holds: a stored tree, or for plain objects a tree
// made of their listing.
type LayerContent struct {
	Stored *TreeLink               `json:"stored,omitempty"`
	Plain  *Tree                   `json:"plain,omitempty"`
	Links  map[string]objects.Link `json:"links,omitempty"`
}

// SeedContent is one seed file.
type SeedContent struct {
	To            string       `json:"to"`
	Size          int64        `json:"size"`
	Link          objects.Link `json:"link"`
	IfMissingOnly bool         `json:"if_missing_only"`
}

// RestoreResult counts what was written.
type RestoreResult struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	// Moved stood at names of the platform.
	Moved []Moved `json:"moved,omitempty"`
}

// ExportRequest names a stored tree and the directory that its files are written to,
// which is there and empty. Links are those of the tree's objects.
type ExportRequest struct {
	Tree  TreeLink                `json:"tree"`
	Links map[string]objects.Link `json:"links"`
	Dir   string                  `json:"dir"`
	Raw   bool                    `json:"raw"`
}

// Exported says what an export wrote and what has no place in its layout.
type Exported struct {
	Files   int      `json:"files"`
	Links   int      `json:"links"`
	Bytes   int64    `json:"bytes"`
	Skipped []string `json:"skipped,omitempty"` // what has no place there, and files that never held still
	// Stripped would have run a program of the agent's on the reader's machine.
	Stripped []string `json:"stripped,omitempty"`
}

// ValidateRequest names paths that must be there.
type ValidateRequest struct {
	RequiredPaths []string `json:"requiredPaths"`
}

// CompareRequest names the tree that the workspace must be equal to.
type CompareRequest struct {
	Tree    TreeLink `json:"tree"`
	Exclude []string `json:"exclude,omitempty"`
}
