package doctor

import (
	"os"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/sandbox"
)

// checkOwners says whether agents of a root server can work in this directory itself: they
// are users of their own, and need an idmapped mount to write as the directory's owner.
func checkOwners(cfg config.Executor) []Finding {
	if os.Geteuid() != 0 || Unwalled(cfg) != "" {
		return nil // agents have the owner's user themselves
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	return []Finding{owners(dir, sandbox.CheckLend(dir))}
}

// owners is the finding about a directory that can be lent, or why not.
func owners(dir string, err error) Finding {
	f := Finding{Part: "idmapped mounts", OK: err == nil, Found: "agents can work in " + dir + " as its owner (--here)"}
	if err != nil {
		f.Found, f.Problem = "", dir+": "+err.Error()
		f.Disables = "threads that work in this directory itself (--here, thole tui): a root server runs agents as other users"
		f.Fix = "run thole as the owner of the directory, work on a branch of it (thole run without --here), or keep it on a file system such as ext4, xfs or btrfs"
	}
	return f
}
