//go:build !linux

package supervise

import (
	"os/exec"
	"strconv"
	"strings"
)

// adoptOrphans has no equivalent here: a descendant that leaves its group and its
// parent is out of reach.
func adoptOrphans() error { return nil }

func descendants(pid int) []int {
	out, err := exec.Command("ps", "-axo", "pid=,ppid=").Output()
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, line := range strings.Split(string(out), "\n") {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		p, e1 := strconv.Atoi(f[0])
		parent, e2 := strconv.Atoi(f[1])
		if e1 == nil && e2 == nil {
			children[parent] = append(children[parent], p)
		}
	}
	var all []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		all = append(all, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return all
}
