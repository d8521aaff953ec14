package session

import (
	"context"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
)

const (
	// ShareLife is how long a share link works unless its maker says otherwise,
	// MaxShareLife how long at most.
	ShareLife    = 7 * 24 * time.Hour
	MaxShareLife = 90 * 24 * time.Hour
	// maxShares bounds the share links of one user.
	maxShares = 200
	// sharePrefix lets secret scanners find a leaked token, and no API token begins so.
	sharePrefix = "tholeshare_"
)

// Methods with which the home's owner is asked for share links over its socket.
const (
	MethodShareCreate = "thole/share/create"
	MethodShareList   = "thole/share/list"
	MethodShareRevoke = "thole/share/revoke"
)

// Share lets who has its token read one thread; the token is not in it. It is no API
// token and no login: nothing but the routes of shared threads asks for one.
type Share struct {
	Hash    string
	ID      string
	Thread  thole.ThreadID
	User    thole.UserID // the thread's owner, who made it
	Created time.Time
	Seen    time.Time
	Expires time.Time
}

// ShareDescription is a share link as its maker sees it. Secret and URL are there only when it
// was just made.
type ShareDescription struct {
	ID         string         `json:"id"`
	SessionID  thole.ThreadID `json:"session_id"`
	CreatedAt  time.Time      `json:"created_at"`
	LastUsedAt time.Time      `json:"last_used_at,omitzero" doc:"to the hour"`
	ExpiresAt  time.Time      `json:"expires_at"`
	Secret     string         `json:"token,omitempty"`
	Path       string         `json:"path,omitempty" doc:"of the page: /share#TOKEN"`
	URL        string         `json:"url,omitempty"`
}

// Describe leaves out what nobody may see.
func (s Share) Describe() ShareDescription {
	return ShareDescription{ID: s.ID, SessionID: s.Thread, CreatedAt: s.Created, LastUsedAt: s.Seen, ExpiresAt: s.Expires}
}

// SharePath is where the page shows what a token lets read. The token is in the fragment, which
// browsers send to nobody.
func SharePath(token string) string { return "/share#" + token }

// ShareParams are the params of the methods.
type ShareParams struct {
	Thread thole.ThreadID `json:"thread_id,omitempty"`
	Life   int64          `json:"expires_in,omitempty"`
	ID     string         `json:"id,omitempty"`
}

// NewShare makes a share link for a thread of the user. The token is returned here and never
// again.
func (m *Manager) NewShare(ctx context.Context, user thole.UserID, thread thole.ThreadID, life time.Duration) (string, Share, error) {
	if life == 0 {
		life = ShareLife
	}
	if life < 0 || life > MaxShareLife {
		return "", Share{}, thole.Errorf(thole.CodeInvalid, "a share link works for at most %d days", int(MaxShareLife.Hours()/24))
	}
	now, value := m.now(), sharePrefix+secret()
	s := Share{Hash: sum(value), ID: thole.NewID[string](now), Thread: thread, User: user, Created: now, Expires: now.Add(life)}
	if err := m.store.AddShare(ctx, s, maxShares); err != nil {
		return "", Share{}, thole.Errorf(thole.CodeOf(err), "share: %w", err)
	}
	return value, s, nil
}

// Shared finds the share link of a token.
func (m *Manager) Shared(ctx context.Context, value string) (Share, error) {
	if !strings.HasPrefix(value, sharePrefix) {
		return Share{}, errNotShared()
	}
	hash, now := sum(value), m.now()
	s, found, err := m.store.Share(ctx, hash, now)
	if err != nil {
		return Share{}, thole.Errorf(thole.CodeOf(err), "read share link: %w", err)
	}
	if !found {
		return Share{}, errNotShared()
	}
	if now.Sub(s.Seen) >= seenEvery {
		if err := m.store.SeeShare(ctx, hash, now); err != nil {
			return Share{}, thole.Errorf(thole.CodeOf(err), "read share link: %w", err)
		}
	}
	return s, nil
}

func errNotShared() error {
	return thole.Errorf(thole.CodeUnauthorized, "this share link is unknown, revoked or expired").WithHint("ask who sent it for a new one")
}

// Shares lists the share links of a user that work, oldest first; of one thread, unless
// that is "".
func (m *Manager) Shares(ctx context.Context, user thole.UserID, thread thole.ThreadID) ([]ShareDescription, error) {
	all, err := m.store.Shares(ctx, user, thread, m.now())
	if err != nil {
		return nil, thole.Errorf(thole.CodeOf(err), "list share links: %w", err)
	}
	out := make([]ShareDescription, 0, len(all))
	for _, s := range all {
		out = append(out, s.Describe())
	}
	return out, nil
}

// EndShare ends a share link of the user, with the streams of who reads with it.
func (m *Manager) EndShare(ctx context.Context, user thole.UserID, id string) error {
	ended, err := m.store.EndShare(ctx, user, id)
	if err == nil && len(ended) == 0 {
		return thole.Errorf(thole.CodeNotFound, "no share link %s", id).WithHint("thole thread share list shows them")
	}
	return m.over(ended, err, "share", id)
}
