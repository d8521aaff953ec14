package forge

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// Repository is a repository at a forge.
type Repository struct {
	Kind Kind
	Host string // as tokens are kept for it
	API  *url.URL
	Path string // OWNER/NAME, with groups at GitLab
}

// known are the forges of everybody.
var known = map[string]Host{
	"github.com":   {Kind: GitHub, API: "https://api.github.com"},
	"gitlab.com":   {Kind: GitLab},
	"codeberg.org": {Kind: Gitea},
	"gitea.com":    {Kind: Gitea},
}

// place is where the API of a kind is on its server.
var place = map[Kind]string{GitHub: "/api/v3", GitLab: "/api/v4", Gitea: "/api/v1"}

var scp = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9][A-Za-z0-9.-]*):([^:].*)$`)
})

// parse takes an address of git apart: over which scheme the API is, the server, and the path there.
func parse(remote string) (scheme, host, path string, err error) {
	bad := func() error {
		return thole.Errorf(thole.CodeUnsupported, "%q is no address of a forge", remote).WithHint("name the repository with --remote, as https://HOST/OWNER/NAME or git@HOST:OWNER/NAME")
	}
	if strings.Contains(remote, "://") {
		u, perr := url.Parse(remote)
		if perr != nil || u.Host == "" {
			return "", "", "", bad()
		}
		switch u.Scheme {
		case "http", "https":
			scheme, host = u.Scheme, u.Host
		case "ssh", "git+ssh", "git":
			scheme, host = "https", u.Hostname()
		default:
			return "", "", "", bad()
		}
		path = u.Path
	} else if m := scp().FindStringSubmatch(remote); m != nil {
		scheme, host, path = "https", m[1], m[2]
	} else {
		return "", "", "", bad()
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	for _, part := range strings.Split(path, "/") {
		if part == "" || part == "." || part == ".." {
			return "", "", "", bad()
		}
	}
	if !strings.Contains(path, "/") {
		return "", "", "", bad()
	}
	return scheme, strings.ToLower(host), path, nil
}

// Server is the server of an address, and over which scheme its API is.
func Server(remote string) (scheme, host string, err error) {
	scheme, host, _, err = parse(remote)
	return scheme, host, err
}

// Find returns the repository of an address. A server that nobody named is asked what it
// is, without a token.
func (c *Client) Find(ctx context.Context, remote string) (Repository, error) {
	scheme, host, path, err := parse(remote)
	if err != nil {
		return Repository{}, err
	}
	at, ok := c.Hosts[host]
	if !ok {
		at, ok = known[host]
	}
	if !ok {
		if at.Kind, err = c.probe(ctx, scheme, host); err != nil {
			return Repository{}, err
		}
	}
	if at.API == "" {
		at.API = scheme + "://" + host + place[at.Kind]
	}
	u, err := url.Parse(at.API)
	if err != nil || u.Host == "" {
		return Repository{}, thole.Errorf(thole.CodeInvalid, "the API of %s has the address %q", host, at.API).WithHint("correct forges in the configuration")
	}
	if at.Kind != GitLab && strings.Count(path, "/") != 1 {
		return Repository{}, thole.Errorf(thole.CodeUnsupported, "%s has no repository %q: it must be OWNER/NAME", host, path)
	}
	return Repository{Kind: at.Kind, Host: host, API: u, Path: path}, nil
}

// probe asks a server what it is.
func (c *Client) probe(ctx context.Context, scheme, host string) (Kind, error) {
	client := &http.Client{Transport: c.Transport, Timeout: callTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var last error
	for _, try := range []struct {
		kind Kind
		path string
		is   func(res *http.Response, body map[string]any) bool
	}{
		{Gitea, "/api/v1/version", func(res *http.Response, body map[string]any) bool {
			return res.StatusCode == 200 && body["version"] != nil
		}},
		{GitLab, "/api/v4/version", func(res *http.Response, body map[string]any) bool {
			return (res.StatusCode == 200 && body["version"] != nil) || (res.StatusCode == 401 && body["message"] != nil)
		}},
		{GitHub, "/api/v3/meta", func(res *http.Response, body map[string]any) bool {
			return res.Header.Get("X-GitHub-Request-Id") != "" && len(body) > 0
		}},
	} {
		req, err := http.NewRequestWithContext(ctx, "GET", scheme+"://"+host+try.path, nil)
		if err != nil {
			return "", err
		}
		res, err := client.Do(req)
		if err != nil {
			last = err
			continue
		}
		text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
		res.Body.Close()
		var body map[string]any
		if strictjson.Unmarshal(text, &body) == nil && try.is(res, body) {
			return try.kind, nil
		}
	}
	if last != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "ask %s which forge it is: %w", host, last).WithHint("forges in the configuration says it: %q = \"gitea\"", host)
	}
	return "", thole.Errorf(thole.CodeUnsupported, "%s is no forge that thole knows: it has neither the API of GitHub nor of GitLab, Gitea or Forgejo", host).
		WithHint("forges in the configuration says where its API is: %q = \"gitea https://…/api/v1\"", host)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// ParseHost reads a forge of the configuration: KIND, or KIND and the URL of its API.
func ParseHost(text string) (Host, error) {
	kind, api, _ := strings.Cut(strings.TrimSpace(text), " ")
	h := Host{Kind: Kind(kind), API: strings.TrimSpace(api)}
	if place[h.Kind] == "" {
		return h, thole.Errorf(thole.CodeInvalid, "unknown forge %q", kind).WithHint("it is github, gitlab or gitea (also for Forgejo)")
	}
	if h.API != "" {
		if u, err := url.Parse(h.API); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return h, thole.Errorf(thole.CodeInvalid, "the address of an API is no URL: %q", h.API)
		}
	}
	return h, nil
}
