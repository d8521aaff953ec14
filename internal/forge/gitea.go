package forge

import (
	"context"
	"net/url"
	"strconv"
	"strings"
)

// gitea is the REST API of Gitea and Forgejo. A draft is a matter of the title.
type gitea struct {
	*caller
	at Repository
}

type giteaPull struct {
	HTMLURL string `json:"html_url"`
	Number  int    `json:"number"`
	Head    struct {
		Ref   string `json:"ref"`
		Label string `json:"label"`
	} `json:"head"`
	Base struct {
		Ref string `json:"ref"`
	} `json:"base"`
}

func (p giteaPull) opened() Opened { return Opened{URL: p.HTMLURL, Number: p.Number, Base: p.Base.Ref} }

func (g gitea) repo() string {
	owner, name, _ := strings.Cut(g.at.Path, "/")
	return "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(name)
}

func (g gitea) base(ctx context.Context) (string, error) {
	var repo struct {
		DefaultBranch string `json:"default_branch"`
	}
	err := g.do(ctx, "GET", g.repo(), nil, nil, &repo)
	return repo.DefaultBranch, err
}

// giteaPages bounds the search: the list cannot be asked for one branch.
const giteaPages = 20

func (g gitea) find(ctx context.Context, r Request) (Opened, error) {
	owner, _, _ := strings.Cut(g.at.Path, "/")
	for page := range giteaPages {
		var list []giteaPull
		if err := g.do(ctx, "GET", g.repo()+"/pulls", url.Values{"state": {"open"}, "sort": {"recentupdate"}, "limit": {"50"}, "page": {strconv.Itoa(page + 1)}}, nil, &list); err != nil {
			return Opened{}, err
		}
		for _, p := range list {
			if p.Base.Ref == r.Base && p.Head.Ref == r.Head && (p.Head.Label == r.Head || p.Head.Label == owner+":"+r.Head) {
				return p.opened(), nil
			}
		}
		if len(list) == 0 {
			break
		}
	}
	return Opened{}, nil
}

func (g gitea) create(ctx context.Context, r Request) (Opened, error) {
	if r.Draft {
		r.Title = "WIP: " + r.Title
	}
	var made giteaPull
	err := g.do(ctx, "POST", g.repo()+"/pulls", nil, map[string]any{"head": r.Head, "base": r.Base, "title": r.Title, "body": r.Body}, &made)
	return made.opened(), err
}
