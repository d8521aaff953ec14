package changes

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/forge"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/shelf"
	"github.com/tholehq/thole/internal/thread"
)

// PullRequestParams are what to open for a branch that was pushed to a remote.
type PullRequestParams struct {
	Thread thole.ThreadID `json:"thread_id"`
	Remote string         `json:"remote"`
	Branch string         `json:"branch"`
	Base   string         `json:"base,omitempty"`
	Title  string         `json:"title,omitempty"`
	Body   string         `json:"body,omitempty"`
	Draft  bool           `json:"draft,omitempty"`
	// Token is of the asker's own programs; it is used before one that is kept here.
	Token string `json:"token,omitempty"`
}

// PullRequest implements httpapi.Changes.
func (s *Service) PullRequest(ctx context.Context, actor thole.Actor, id thole.ThreadID, p httpapi.NewPullRequest) (view.PullRequest, error) {
	th, err := s.cfg.Threads.Get(ctx, actor, id)
	if err != nil {
		return view.PullRequest{}, err
	}
	if p.Remote != "" { // what cannot become a request is not pushed either
		if _, err := s.cfg.Forges.Find(ctx, p.Remote); err != nil {
			return view.PullRequest{}, err
		}
	}
	pushed, err := s.Push(ctx, actor, th.ID, p.Remote, p.Force)
	if err != nil {
		return view.PullRequest{}, err
	}
	return s.request(ctx, actor, PullRequestParams{Thread: id, Remote: pushed.Remote, Branch: pushed.Branch, Base: p.Base, Title: p.Title, Body: p.Body, Draft: p.Draft})
}

// request opens a request for a branch that was pushed.
func (s *Service) request(ctx context.Context, actor thole.Actor, p PullRequestParams) (view.PullRequest, error) {
	th, err := s.cfg.Threads.Get(ctx, actor, p.Thread)
	if err != nil {
		return view.PullRequest{}, err
	}
	at, err := s.cfg.Forges.Find(ctx, p.Remote)
	if err != nil {
		return view.PullRequest{}, err
	}
	token := p.Token
	if token == "" && s.cfg.Token != nil {
		if token, err = s.cfg.Token(ctx, th.Owner, at.Host); err != nil {
			return view.PullRequest{}, err
		}
	}
	r := forge.Request{Title: cmp.Or(p.Title, shelf.Title(th)), Body: p.Body, Head: p.Branch, Base: p.Base, Draft: p.Draft}
	if r.Body == "" {
		if r.Body, err = s.story(ctx, actor, th); err != nil {
			return view.PullRequest{}, err
		}
	}
	var open forge.Opened
	err = s.recorded(ctx, "file.pull_request", th, true, map[string]any{"remote": plainRemote(p.Remote), "branch": p.Branch, "base": p.Base}, func() (err error) {
		open, err = s.cfg.Forges.Open(ctx, at, token, r)
		return err
	})
	return view.PullRequest{URL: open.URL, Number: open.Number, Branch: p.Branch, Base: open.Base, Existing: open.Existing}, err
}

// maxStory bounds what of a message stands in a request.
const maxStory = 4000

// story is what a thread was asked and what its agent said last.
func (s *Service) story(ctx context.Context, actor thole.Actor, th fold.Thread) (string, error) {
	page, err := s.cfg.Threads.Items(ctx, actor, th.ID, "", thread.PageParams{Limit: 100, Desc: true})
	if err != nil {
		return "", err
	}
	said := ""
	for _, it := range page.Items {
		if it.Item.Kind == event.ItemMessage && it.Item.Text != "" {
			said = it.Item.Text
			break
		}
	}
	var b strings.Builder
	if th.Preview != "" {
		fmt.Fprintf(&b, "Asked:\n\n%s\n\n", quoted(th.Preview))
	}
	if said != "" {
		fmt.Fprintf(&b, "%s said:\n\n%s\n\n", cmp.Or(th.Settings.Provider, "The agent"), quoted(said))
	}
	fmt.Fprintf(&b, "Made by thole thread %s.\n", th.ID)
	return b.String(), nil
}

// quoted is a text of others as a quotation that calls nobody and closes no issue: a forge
// acts on names and numbers.
func quoted(text string) string {
	if r := []rune(text); len(r) > maxStory {
		text = string(r[:maxStory]) + "…"
	}
	const between = "\u200b" // zero-width space
	text = strings.NewReplacer("@", "@"+between, "#", "#"+between, "!", "!"+between, "<", "&lt;").Replace(text)
	return "> " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ")
}
