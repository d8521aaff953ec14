package branch

import (
	"context"
	"net/url"
	"strings"

	"github.com/tholehq/thole/internal/git"
)

// settings are what git's configuration says in a repository: the user's own, and the
// repository's over it.
func (b *Branches) settings(ctx context.Context, at userRepo) (map[string]string, error) {
	return b.user().SettingsIn(ctx, b.over(at, git.Cmd{}), at.uid == 0)
}

// user is whose configuration of git counts.
func (b *Branches) user() git.User { return git.User{Git: b.cfg.Git, Home: b.cfg.UserHome} }

// cleanURL is an address that an agent may see: one it could reach, and without what
// proves who the user is. "" for any other.
func cleanURL(address string) string {
	transport := git.Transport(address)
	if transport == "" || strings.ContainsAny(address, "\n\r\x00") {
		return ""
	}
	if !strings.Contains(address, "://") {
		return address // HOST:PATH has no place for a password
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if u.User != nil && transport == "ssh" {
		u.User = url.User(u.User.Username())
	} else {
		u.User = nil
	}
	u.RawQuery, u.Fragment = "", ""
	return u.String()
}
