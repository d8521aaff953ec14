package forge

import (
	"context"
	"net/url"
	"strings"
)

// github is GitHub's REST API, also of an own server.
type github struct {
	*caller
	at Repository
}

type githubPull struct {
	HTMLURL string `json:"html_url"`
	Number  int    `json:"number"`
	Base    struct {
		Ref string `json:"ref"`
	} `json:"base"`
}

func (p githubPull) opened() Opened {
	return Opened{URL: p.HTMLURL, Number: p.Number, Base: p.Base.Ref}
}

func (g github) repo() string {
	owner, name, _ := strings.Cut(g.at.Path, "/")
	return "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(name)
}

func (g github) base(ctx context.Context) (string, error) {
	var repo struct {
		DefaultBranch string `json:"default_branch"`
	}
	err := g.do(ctx, "GET", g.repo(), nil, nil, &repo)
	return repo.DefaultBranch, err
}

func (g github) find(ctx context.Context, r Request) (Opened, error) {
	owner, _, _ := strings.Cut(g.at.Path, "/")
	var list []githubPull
	err := g.do(ctx, "GET", g.repo()+"/pulls", url.Values{"state": {"open"}, "head": {owner + ":" + r.Head}, "base": {r.Base}}, nil, &list)
	if err != nil || len(list) == 0 {
		return Opened{}, err
	}
	return list[0].opened(), nil
}

func (g github) create(ctx context.Context, r Request) (Opened, error) {
	var made githubPull
	err := g.do(ctx, "POST", g.repo()+"/pulls", nil, map[string]any{"title": r.Title, "body": r.Body, "head": r.Head, "base": r.Base, "draft": r.Draft}, &made)
	return made.opened(), err
}
