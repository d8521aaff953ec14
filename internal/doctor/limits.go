package doctor

import (
	"fmt"
	"strings"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/executor/local"
)

const cgroupRoot = "/sys/fs/cgroup"

// cgroupOf is the control group that executors are limited below, "" for none.
func cgroupOf(cfg config.Executor) string {
	switch cfg.Cgroup {
	case "off":
		return ""
	case "auto":
		return local.Delegated(cgroupRoot)
	}
	return cfg.Cgroup
}

// Groups are the control groups that executors are limited by.
func Groups(cfg config.Executor) local.Groups { return local.FindGroups(cgroupRoot, cgroupOf(cfg)) }

// Unwalled is the warning where a person typed that agents run without
// walls, "" where they do not.
func Unwalled(cfg config.Executor) string {
	if cfg.Isolation != "none" {
		return ""
	}
	return "executor.isolation = none: agents run without walls and can read and change everything that the user of this server can"
}

// CheckLimits says which limits of executors hold here. One that cannot be
// enforced is reported, never passed over.
func CheckLimits(cfg config.Executor) Finding {
	f := Finding{Part: "limits", Fix: "run thole as a systemd service with Delegate=yes and DelegateSubgroup=main, or name a group it may use in executor.cgroup"}
	path := cgroupOf(cfg)
	missing := local.FindGroups(cgroupRoot, path).Missing()
	switch {
	case cfg.Cgroup == "off":
		f.OK, f.Found = true, "off"
	case path == "":
		f.Problem, f.Disables = "no control group was delegated to thole", "the limits of local executors: CPUs, memory, processes"
	case len(missing) > 0:
		f.Found, f.Problem = path, "it lacks "+strings.Join(missing, ", ")
		f.Disables = "these limits of local executors"
	default:
		f.OK, f.Found = true, "CPUs, memory and processes below "+path
	}
	ours := ours(cfg)
	if f.OK {
		f.Found += "; " + ours
	} else {
		f.Problem += " (what holds: " + ours + ")"
	}
	return f
}

// ours says which limits need nothing of the machine: the dispatcher holds them.
func ours(cfg config.Executor) string {
	disk, live := "no limit of disk", "any number at a time"
	if cfg.DiskMB > 0 {
		disk = fmt.Sprintf("%d MB of disk each, looked at while a turn runs", cfg.DiskMB)
	}
	if cfg.MaxLive > 0 {
		live = fmt.Sprintf("at most %d at a time", cfg.MaxLive)
	}
	return disk + ", " + live
}
