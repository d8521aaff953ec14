package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/internal/unguarded"
)

// threadStart starts another agent for the thread's: it has the same owner and budget,
// and no more rights.
func (s *Server) threadStart(ctx context.Context, a asker, raw json.RawMessage) (string, error) {
	p, err := read[struct {
		Message  string        `json:"message"`
		Name     string        `json:"name"`
		Provider string        `json:"provider"`
		Model    string        `json:"model"`
		Profile  thole.Profile `json:"profile"`
	}](raw)
	if err != nil {
		return "", err
	}
	if err := a.acts("thread_start"); err != nil {
		return "", err
	}
	if err := checkMessage(p.Message); err != nil {
		return "", err
	}
	if child(a.th.Source, a.th.Parent) {
		return "", thole.Errorf(thole.CodeForbidden, "this thread was started by another agent, and starts none itself")
	}
	n, err := s.cfg.Children(ctx, a.Thread)
	if err != nil {
		return "", err
	}
	if n >= maxChildren {
		return "", thole.Errorf(thole.CodeOverloaded, "this thread has started %d threads, which is the most", n)
	}
	set, err := s.childSettings(a, p.Provider, p.Model, p.Profile)
	if err != nil {
		return "", err
	}
	id := thole.NewID[thole.ThreadID](s.cfg.Now())
	files := a.th.Files
	if files.Branch != "" { // a branch of its own, at the same commit
		files.Branch += "-" + string(id[len(id)-8:])
	}
	th, err := s.cfg.Threads.Create(ctx, a.actor(), thread.Create{
		ID: id, Owner: a.Owner, Name: oneLine(p.Name), Settings: set, Source: thole.ThreadOfAgent, Client: a.Provider, Parent: a.Thread, Files: files,
	})
	if err != nil {
		return "", err
	}
	_, err = s.cfg.Threads.StartTurn(ctx, a.actor(), thread.StartTurn{Thread: th.ID, Input: thole.Text(label(a.Thread, "started you for this task", p.Message))})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Thread %s works on it with %s. It reports with a message when it is done; thread_send reaches it.", th.ID, set.Provider), nil
}

// child reports whether a thread was started by the agent of another.
func child(source string, parent thole.ThreadID) bool {
	return source == thole.ThreadOfAgent && parent != ""
}

// ranks order the profiles by what they permit.
var ranks = map[thole.Profile]int{thole.ProfilePlan: 1, thole.ProfileAsk: 2, thole.ProfileEdit: 3, thole.ProfileFull: 4}

// childSettings are those of the thread, as far as they are not another program's, with
// at most its profile and what it may reach.
func (s *Server) childSettings(a asker, providerName, model string, profile thole.Profile) (event.Settings, error) {
	set := event.Settings{Provider: a.Provider, Profile: a.profile, Network: a.th.Settings.Network}
	if profile != "" {
		if ranks[profile] == 0 {
			return set, thole.Errorf(thole.CodeInvalid, "unknown profile %.32q", profile).WithHint("use plan, ask, edit or full")
		}
		if ranks[profile] > ranks[a.profile] && !unguarded.Build {
			return set, thole.Errorf(thole.CodeForbidden, "profile %s is more than this thread has, which is %s", profile, a.profile)
		}
		set.Profile = profile
	}
	if name := table.Named(providerName); name != "" && name != a.Provider {
		set.Provider = name
	} else {
		set.Model, set.Effort, set.Options = a.th.Settings.Model, a.th.Settings.Effort, a.th.Settings.Options
	}
	if model != "" {
		if len(model) > 200 {
			return set, thole.Errorf(thole.CodeInvalid, "the model's name is too long")
		}
		set.Model = model
	}
	var names []string
	for _, info := range s.cfg.Providers() {
		if info.Available {
			names = append(names, info.Name)
		}
	}
	if !slices.Contains(names, set.Provider) {
		return set, thole.Errorf(thole.CodeInvalid, "no agent program %.64q here", set.Provider).WithHint("there are %s", strings.Join(names, ", "))
	}
	set.Instructions = fmt.Sprintf("The agent of another thread, %s, started you. When you are done, or cannot go on, report to it with the tool thread_send and that thread id: what you did, what you found, and what is left.", a.Thread)
	return set, nil
}

// threadSend queues a message between a thread and one that it started.
func (s *Server) threadSend(ctx context.Context, a asker, raw json.RawMessage) (string, error) {
	p, err := read[struct {
		Thread  string `json:"thread_id"`
		Message string `json:"message"`
	}](raw)
	if err != nil {
		return "", err
	}
	if err := a.acts("thread_send"); err != nil {
		return "", err
	}
	if err := checkMessage(p.Message); err != nil {
		return "", err
	}
	none := thole.Errorf(thole.CodeNotFound, "thread %.64q is neither one that this thread started nor the one that started it", p.Thread)
	to, err := s.cfg.Threads.Get(ctx, a.actor(), thole.ThreadID(p.Thread))
	if thole.CodeOf(err) == thole.CodeNotFound {
		return "", none
	}
	if err != nil {
		return "", err
	}
	what := ""
	switch {
	case to.Owner != a.Owner || to.ID == a.Thread:
	case child(to.Source, to.Parent) && to.Parent == a.Thread:
		what = "which started you, says"
	case child(a.th.Source, a.th.Parent) && a.th.Parent == to.ID:
		what = "which you started, says"
	}
	if what == "" && unguarded.Build {
		what = "says"
	}
	if what == "" {
		return "", none
	}
	if _, err := s.cfg.Threads.Enqueue(ctx, a.actor(), thread.Enqueue{Thread: to.ID, Input: thole.Text(label(a.Thread, what, p.Message)), Start: true}); err != nil {
		return "", err
	}
	return "The message is on its way: it is read after the turn that runs there.", nil
}

func checkMessage(text string) error {
	if strings.TrimSpace(text) == "" || len(text) > maxMessage {
		return thole.Errorf(thole.CodeInvalid, "a message of at most %d bytes is needed", maxMessage)
	}
	return nil
}

// label says whose words a message holds: another agent's, and no user's. The lines around
// them cannot stand in them.
func label(from thole.ThreadID, what, text string) string {
	fence := "===== thread " + string(from[max(0, len(from)-12):]) + " ====="
	text = strings.ReplaceAll(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), ""), fence, "=====")
	return fmt.Sprintf("The agent of thread %s, %s:\n%s\n%s\n%s\n", from, what, fence, text, fence)
}
