package appserver

import (
	"context"
	"encoding/json"
	"fmt"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

func (s *Server) registerReview() {
	inThread(on(s, "review/start", s.reviewStart), serial.Exclusive, func(p *app.ReviewStartParams) string { return p.ThreadID })
}

// reviewStart has the agent review in a turn of its own: any agent can look at changes,
// and what it says last is what it found. A busy thread refuses: Codex would cut its turn
// off.
func (s *Server) reviewStart(ctx context.Context, c *conn, p *app.ReviewStartParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	if d := str(p.Delivery); d != "" && d != "inline" {
		return answer{}, invalid("unknown variant `%s`, expected `inline`", d)
	}
	what, prompt, err := review(p.Target)
	if err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.StartTurn(ctx, c.who(), thread.StartTurn{Thread: id, Input: thole.Review(what, prompt), Command: true})
	if err != nil {
		return answer{}, err
	}
	turn := accepted(t)
	content, _ := json.Marshal(userInputs(thole.Text(what)))
	turn.Items = []app.Item{{Type: app.ItemUserMessage, ID: turn.ID, Content: content}}
	return answer{result: app.ReviewStartResult{Turn: turn, ReviewThreadID: p.ThreadID}}, nil
}

// review is what people see of a review, and what the agent reads.
func review(t app.ReviewTarget) (what, prompt string, err error) {
	look := ""
	switch {
	case t.Type == "uncommittedChanges":
		what, look = "current changes", "the uncommitted changes in the working tree: staged, unstaged and untracked files"
	case t.Type == "baseBranch" && t.Branch != "":
		what, look = fmt.Sprintf("changes against '%s'", t.Branch), fmt.Sprintf("the changes on the current branch since it left %s", t.Branch)
	case t.Type == "commit" && t.SHA != "":
		what = "commit " + t.SHA[:min(len(t.SHA), 7)]
		if t.Title != nil && *t.Title != "" {
			what += ": " + *t.Title
		}
		look = fmt.Sprintf("the changes that commit %s made", t.SHA)
	case t.Type == "custom" && t.Instructions != "":
		return t.Instructions, "Review as follows and change nothing: " + t.Instructions, nil
	default:
		return "", "", invalid("unknown or incomplete review target `%s`", t.Type)
	}
	return what, "Review " + look + ". Change nothing. Report what is wrong or risky, most serious first, each with its file and line and why; say so if nothing is.", nil
}
