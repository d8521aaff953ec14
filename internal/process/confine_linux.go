package process

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// confined are the control groups in which everything runs that is started here and
// in no box; this process does not. Written once, before the first start.
var confined struct {
	threads []string // of the first version: files that take in a thread
	dir     string   // of the second
}

// Confine makes processes that are started from now on members of groups.
func Confine(dirs ...string) {
	for _, dir := range dirs {
		if tasks := filepath.Join(dir, "tasks"); exists(tasks) {
			confined.threads = append(confined.threads, tasks)
		} else {
			confined.dir = dir
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// withinGroups calls start where its child is born into the groups of the first
// version: on a thread that is in them and ends with the call.
func withinGroups(start func() error) error {
	if len(confined.threads) == 0 {
		return start()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good
		for tasks := range slices.Values(confined.threads) {
			if err := os.WriteFile(tasks, []byte("0"), 0); err != nil {
				done <- fmt.Errorf("enter the agents' control group: %w", err)
				return
			}
		}
		done <- start()
	}()
	return <-done
}
