package forge

import (
	"context"
	"net/url"
)

// gitlab is GitLab's REST API. Its requests are merge requests, its drafts a matter of
// the title.
type gitlab struct {
	*caller
	at Repository
}

type gitlabMerge struct {
	WebURL       string `json:"web_url"`
	IID          int    `json:"iid"`
	TargetBranch string `json:"target_branch"`
}

func (m gitlabMerge) opened() Opened {
	return Opened{URL: m.WebURL, Number: m.IID, Base: m.TargetBranch}
}

func (g gitlab) project() string { return "/projects/" + url.PathEscape(g.at.Path) }

func (g gitlab) base(ctx context.Context) (string, error) {
	var project struct {
		DefaultBranch string `json:"default_branch"`
	}
	err := g.do(ctx, "GET", g.project(), nil, nil, &project)
	return project.DefaultBranch, err
}

func (g gitlab) find(ctx context.Context, r Request) (Opened, error) {
	var list []gitlabMerge
	err := g.do(ctx, "GET", g.project()+"/merge_requests", url.Values{"state": {"opened"}, "source_branch": {r.Head}, "target_branch": {r.Base}}, nil, &list)
	if err != nil || len(list) == 0 {
		return Opened{}, err
	}
	return list[0].opened(), nil
}

func (g gitlab) create(ctx context.Context, r Request) (Opened, error) {
	if r.Draft {
		r.Title = "Draft: " + r.Title
	}
	var made gitlabMerge
	err := g.do(ctx, "POST", g.project()+"/merge_requests", nil, map[string]any{"source_branch": r.Head, "target_branch": r.Base, "title": r.Title, "description": r.Body}, &made)
	return made.opened(), err
}
