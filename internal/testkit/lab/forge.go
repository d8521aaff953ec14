package lab

import (
	"path/filepath"
	"testing"
)

// Versions of what forges are proven with; scripts/lab gets the same ones.
const (
	OctokitVersion = "23.0.2"
	GiteaVersion   = "v1.26.0"
)

// Octokit returns the file in which GitHub describes its API.
func Octokit(t testing.TB) string {
	t.Helper()
	path, err := cached("octokit-"+OctokitVersion+"/api.github.com.json", "octokit")
	Need(t, "octokit", err)
	use(t, "octokit", OctokitVersion)
	return path
}

// Gitea returns a forge's program, and the directory that it wants to work in.
func Gitea(t testing.TB) (program, work string) {
	t.Helper()
	path, err := cached("gitea-"+GiteaVersion+"/gitea", "gitea")
	Need(t, "gitea", err)
	use(t, "gitea", GiteaVersion)
	return path, filepath.Join(filepath.Dir(path), "work")
}
