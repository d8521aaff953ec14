package doctor

import (
	"fmt"
	"slices"
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

// CheckLimits says which limits of executors hold here, and by what. One that cannot be
// enforced is reported, never passed over.
func CheckLimits(cfg config.Executor) Finding {
	f := Finding{Part: "limits", Fix: "run thole as a systemd service with Delegate=yes and DelegateSubgroup=main, or name a group it may use in executor.cgroup"}
	path := cgroupOf(cfg)
	groups := local.FindGroups(cgroupRoot, path)
	var held, lost []string
	for _, l := range []struct{ controller, name, otherwise string }{
		{"cpu", "CPUs", ""},
		{"memory", "memory", "memory by looks of executord"},
		{"pids", "processes", "processes by looks of executord and, since Linux 5.14, RLIMIT_NPROC"},
	} {
		switch {
		case !slices.Contains(groups.Missing(), l.controller):
			held = append(held, fmt.Sprintf("%s by control groups of version %d below %s", l.name, groups.Version(), path))
		case l.otherwise != "" && cfg.Isolation != "none":
			held = append(held, l.otherwise)
		default:
			lost = append(lost, l.name)
		}
	}
	held = append(held, ours(cfg))
	missing := groups.Missing()
	switch {
	case len(missing) == 0, cfg.Cgroup == "off":
		f.OK, f.Found = true, strings.Join(held, "; ")
		if len(lost) > 0 {
			f.Found += "; no limit of " + strings.Join(lost, ", ")
		}
		return f
	case path == "":
		f.Problem = "no control group was delegated to thole"
	default:
		f.Found, f.Problem = path, "it lacks "+strings.Join(missing, ", ")
	}
	f.Problem += " (what holds: " + strings.Join(held, "; ") + ")"
	f.Disables = "limits of local executors: " + strings.Join(lost, ", ")
	if len(lost) == 0 {
		f.Disables = "limits of local executors that hold at once and not at the next look"
	}
	return f
}

// ours says which limits need nothing of the machine: the dispatcher holds them.
func ours(cfg config.Executor) string {
	disk, live := "no limit of disk", "any number at a time"
	if cfg.DiskMB > 0 {
		disk = fmt.Sprintf("%d MB of disk each, looked at while it runs", cfg.DiskMB)
	}
	if cfg.MaxLive > 0 {
		live = fmt.Sprintf("at most %d at a time", cfg.MaxLive)
	}
	return disk + ", " + live
}
