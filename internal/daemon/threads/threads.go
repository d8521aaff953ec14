// Package threads answers what people ask the owner of a home about many threads at once:
// which there are, what each does, and which one a few letters mean. It changes nothing.
package threads

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/source"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
)

// MethodFind lists threads, the newest first.
const MethodFind = "thole/thread/find"

// Words for what a thread does.
const (
	StatusIdle    = "idle"
	StatusRunning = "running"
	StatusWaiting = "waiting" // for a person
	StatusFailed  = "failed"  // its last turn
)

// FindParams select threads; what is not set selects all.
type FindParams struct {
	// Text is the beginning of an id or of a name, or a whole title.
	Text string `json:"text,omitempty"`
	// Within is a directory: of threads that copied it or work in or below it.
	Within string `json:"within,omitempty"`
	// Active selects threads with a turn that is not over.
	Active   bool `json:"active,omitempty"`
	Archived bool `json:"archived,omitempty"`
	// Limit is the most that are returned, 0 for all.
	Limit int `json:"limit,omitempty"`
}

// Thread is a thread on a list.
type Thread struct {
	ID thole.ThreadID `json:"id"`
	// Name is made from the title and can be typed instead of the id.
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Status   string    `json:"status"`
	Waits    string    `json:"waits_for,omitempty"` // approval or input
	Provider string    `json:"provider"`
	Model    string    `json:"model,omitempty"`
	Repo     string    `json:"repo,omitempty"`
	Branch   string    `json:"branch,omitempty"`
	Dir      string    `json:"dir"`
	Archived bool      `json:"archived,omitempty"`
	Turns    int       `json:"turns"`
	Created  time.Time `json:"created_at"`
	Updated  time.Time `json:"updated_at"`
	// Turn is the one that is not over, Since when it began.
	Turn  thole.TurnID `json:"turn_id,omitempty"`
	Since *time.Time   `json:"turn_started_at,omitempty"`
}

// Found is the answer.
type Found struct {
	Threads []Thread `json:"threads"`
}

// Service answers on the home's socket. Safe for concurrent use.
type Service struct{ Threads *thread.Machine }

// Methods are served on the home's socket.
func (s Service) Methods() map[string]daemon.Method {
	return map[string]daemon.Method{
		MethodFind: func(ctx context.Context, actor thole.Actor, params json.RawMessage) (any, error) {
			var p FindParams
			if err := strictjson.Unmarshal(params, &p); err != nil {
				return nil, thole.Errorf(thole.CodeInvalid, "find threads: %w", err)
			}
			list, err := s.find(ctx, actor, p)
			return Found{list}, err
		},
	}
}

func (s Service) find(ctx context.Context, actor thole.Actor, p FindParams) ([]Thread, error) {
	out := []Thread{}
	f := thread.Filter{Archived: p.Archived, PageParams: thread.PageParams{Desc: true, Limit: 100}}
	for {
		page, err := s.Threads.List(ctx, actor, f)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Items {
			v := view(t)
			if p.Active && t.Open == "" || p.Within != "" && !within(t.Files, p.Within) || p.Text != "" && !v.Means(p.Text) {
				continue
			}
			if t.Open != "" {
				if turn, err := s.Threads.Turn(ctx, actor, t.ID, t.Open); err == nil {
					v.Since = &turn.Created
				}
			}
			if out = append(out, v); p.Limit > 0 && len(out) == p.Limit {
				return out, nil
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return out, nil
		}
	}
}

func view(t fold.Thread) Thread {
	v := Thread{
		ID: t.ID, Title: t.Name, Provider: t.Settings.Provider, Model: t.Settings.Model, Repo: t.Files.Repo, Branch: t.Files.Branch, Dir: t.WorkDir(),
		Archived: t.Archived, Turns: t.Turns, Created: t.Created, Updated: t.Updated, Turn: t.Open,
	}
	v.Status, v.Waits = Status(t.Status)
	if v.Title == "" {
		v.Title = fold.Title(t.Preview)
	}
	if name, ok := strings.CutPrefix(t.Files.Branch, "thole/"); ok {
		v.Name = name
	} else if v.Title != "" {
		v.Name = source.Slug(v.Title, t.ID)
	}
	return v
}

// Status is what a thread does, in a word, and what it waits for.
func Status(s event.Status) (status, waits string) {
	switch {
	case s.WaitingOnApproval:
		return StatusWaiting, "approval"
	case s.WaitingOnInput:
		return StatusWaiting, "input"
	case s.Active:
		return StatusRunning, ""
	case s.SystemError:
		return StatusFailed, ""
	}
	return StatusIdle, ""
}

// Means reports whether a text names the thread: the beginning of its id or name, or its
// whole title.
func (t Thread) Means(text string) bool {
	return strings.HasPrefix(string(t.ID), strings.ToLower(text)) || t.Name != "" && strings.HasPrefix(t.Name, strings.ToLower(text)) ||
		strings.EqualFold(t.Title, text)
}

// within reports whether files come from a directory.
func within(f thole.Source, dir string) bool {
	at := f.At()
	return at == dir || f.Kind == thole.SourceHere && strings.HasPrefix(at, strings.TrimSuffix(dir, "/")+"/")
}
