package sandbox

// Agents begins the command of a box in which agents run: they are nobody's root,
// have a network of their own with nothing but a loopback, and can make no namespaces
// in which they would be more. nested says whether bubblewrap knows how to refuse
// those.
func Agents(nested bool) *Box {
	box := NewBox("--unshare-cgroup-try", "--unshare-net", "--uid", "1000", "--gid", "1000", "--hostname", "box",
		"--die-with-parent", "--new-session", "--as-pid-1", "--clearenv")
	if nested {
		box.Add("--disable-userns")
	}
	return box
}
