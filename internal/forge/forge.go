// Package forge opens pull requests at GitHub, GitLab, Gitea and Forgejo by their public
// API. It finds which of them an address belongs to, sends a token to nobody else, and
// opens one request for one branch: what is open already is returned, also where the
// answer to an earlier call was lost. It knows no thread and keeps nothing.
package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/strictjson"
)

// Kind is a sort of forge. Forgejo speaks as Gitea does.
type Kind string

const (
	GitHub Kind = "github"
	GitLab Kind = "gitlab"
	Gitea  Kind = "gitea"
)

// Request is what to open.
type Request struct {
	Title, Body string
	Head        string // the branch that was pushed
	Base        string // the branch that it is for; "" is the repository's default
	Draft       bool
}

// Opened is a request that is open.
type Opened struct {
	URL    string
	Number int
	// Existing says that it was open before.
	Existing bool
	Base     string
}

// Client talks to forges. Safe for concurrent use.
type Client struct {
	// Hosts are forges that are not known by their name, by host or host:port.
	Hosts map[string]Host
	// Transport is http.DefaultTransport unless a test says otherwise.
	Transport http.RoundTripper
}

// Host is a forge: its kind, and where its API is; "" is the usual place.
type Host struct {
	Kind Kind
	API  string
}

const (
	callTime  = 30 * time.Second
	maxAnswer = 4 << 20
	maxTitle  = 250
	maxBody   = 60_000
)

// api is one forge's words for what Open needs.
type api interface {
	// base is the repository's default branch.
	base(ctx context.Context) (string, error)
	// find returns the open request of a branch, with Number 0 where there is none.
	find(ctx context.Context, r Request) (Opened, error)
	create(ctx context.Context, r Request) (Opened, error)
}

// Open opens a request, or returns the one that is open for the branch.
func (c *Client) Open(ctx context.Context, at Repository, token string, r Request) (Opened, error) {
	if r.Head == "" || strings.TrimSpace(r.Title) == "" {
		return Opened{}, thole.Errorf(thole.CodeInvalid, "a pull request needs a branch and a title")
	}
	r.Title, r.Body = cut(strings.Join(strings.Fields(r.Title), " "), maxTitle), cut(r.Body, maxBody)
	call, err := c.caller(at, token)
	if err != nil {
		return Opened{}, err
	}
	var forge api
	switch at.Kind {
	case GitHub:
		forge = github{call, at}
	case GitLab:
		forge = gitlab{call, at}
	case Gitea:
		forge = gitea{call, at}
	default:
		return Opened{}, thole.Errorf(thole.CodeUnsupported, "%s is no forge that thole knows", at.Host)
	}
	if r.Base == "" {
		if r.Base, err = forge.base(ctx); err != nil {
			return Opened{}, err
		}
	}
	if r.Base == r.Head {
		return Opened{}, thole.Errorf(thole.CodeInvalid, "branch %s cannot be merged into itself", r.Base).WithHint("name another with --base or --as")
	}
	if have, err := forge.find(ctx, r); err != nil || have.Number != 0 {
		have.Existing = have.Number != 0
		return have, err
	}
	made, err := forge.create(ctx, r)
	if err == nil {
		return made, nil
	}
	// Another client was faster, or the answer was lost: then it is open.
	if have, ferr := forge.find(context.WithoutCancel(ctx), r); ferr == nil && have.Number != 0 {
		have.Existing = true
		return have, nil
	}
	return Opened{}, err
}

// caller calls one API with one token.
type caller struct {
	client *http.Client
	at     Repository
	header string // that carries the token
	value  string
}

func (c *Client) caller(at Repository, token string) (*caller, error) {
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, thole.Errorf(thole.CodeUnauthorized, "there is no token for %s", at.Host).
			WithHint("thole secret set %s --kind git --provider %s, or log in with the forge's own program (gh auth login)", tokenName(at.Host), at.Host)
	}
	if at.API.Scheme != "https" && !loopback(at.API.Hostname()) {
		return nil, thole.Errorf(thole.CodeInvalid, "a token is not sent to %s without encryption", at.API.Host).WithHint("use https")
	}
	out := &caller{at: at, client: &http.Client{Transport: c.Transport, Timeout: callTime, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a token goes nowhere else
	}}}
	switch at.Kind {
	case GitLab:
		out.header, out.value = "Private-Token", token
	case Gitea:
		out.header, out.value = "Authorization", "token "+token
	default:
		out.header, out.value = "Authorization", "Bearer "+token
	}
	return out, nil
}

// tokenName is a name for a secret.
func tokenName(host string) string {
	return strings.Map(func(r rune) rune { return map[bool]rune{true: '-', false: r}[r == ':'] }, host)
}

// status is an answer that is no success.
type status struct {
	code int
	text string
}

func (s *status) Error() string {
	return fmt.Sprintf("%d %s: %s", s.code, http.StatusText(s.code), s.text)
}

// do calls a path below the API. Its parts are escaped by the caller.
func (c *caller) do(ctx context.Context, method, path string, query url.Values, in, out any) error {
	at := strings.TrimSuffix(c.at.API.String(), "/") + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		return err
	}
	req.Header.Set(c.header, c.value)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "thole")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.at.Kind == GitHub {
		req.Header.Set("Accept", "application/vnd.github+json")
		req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	}
	res, err := c.client.Do(req)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "ask %s: %w", c.at.Host, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return thole.Errorf(thole.CodeUnavailable, "read the answer of %s: %w", c.at.Host, err)
	case len(text) > maxAnswer:
		return thole.Errorf(thole.CodeUnavailable, "the answer of %s is too long", c.at.Host)
	case res.StatusCode/100 != 2:
		return c.refused(&status{res.StatusCode, said(text)})
	}
	if err := strictjson.Unmarshal(text, out); err != nil {
		return thole.Errorf(thole.CodeUnavailable, "%s answered what its API does not: %w", c.at.Host, err)
	}
	return nil
}

// refused is an answer as an error of this program.
func (c *caller) refused(s *status) error {
	switch {
	case s.code == http.StatusUnauthorized:
		return thole.Errorf(thole.CodeUnauthorized, "%s refused the token: %w", c.at.Host, s).WithHint("thole secret set %s --kind git --provider %s replaces it", tokenName(c.at.Host), c.at.Host)
	case s.code == http.StatusForbidden:
		return thole.Errorf(thole.CodeForbidden, "%s does not let the token do that: %w", c.at.Host, s).WithHint("it must be allowed to open pull requests in %s", c.at.Path)
	case s.code == http.StatusNotFound:
		return thole.Errorf(thole.CodeNotFound, "%s has no repository %s, or does not show it to this token: %w", c.at.Host, c.at.Path, s)
	case s.code/100 == 3:
		return thole.Errorf(thole.CodeUnavailable, "%s sends elsewhere, where the token is not sent: %w", c.at.Host, s).WithHint("the repository may have moved: name its address with --remote")
	case s.code == http.StatusTooManyRequests || s.code/100 == 5:
		return thole.Errorf(thole.CodeUnavailable, "%s cannot answer now: %w", c.at.Host, s)
	}
	return thole.Errorf(thole.CodeInvalid, "%s refused: %w", c.at.Host, s)
}

// said is what a refusal says, in one line.
func said(text []byte) string {
	var body struct {
		Message json.RawMessage `json:"message"`
		Error   json.RawMessage `json:"error"`
		Errors  json.RawMessage `json:"errors"`
	}
	if strictjson.Unmarshal(text, &body) != nil {
		return "(no explanation)"
	}
	var parts []string
	for _, part := range []json.RawMessage{body.Message, body.Error, body.Errors} {
		if len(part) == 0 || string(part) == "null" {
			continue
		}
		var plain string
		if strictjson.Unmarshal(part, &plain) != nil {
			plain = string(part)
		}
		parts = append(parts, plain)
	}
	return cut(strings.Join(strings.Fields(strings.Join(parts, "; ")), " "), 500)
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
