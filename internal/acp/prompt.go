package acp

import (
	"errors"
	"slices"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/jsonrpc"
	"github.com/tholehq/thole/protocol/app"
)

// prompt is a request that is answered when its turn is over.
type prompt struct {
	req *jsonrpc.Request
	// key names the message to the thread: it is started once, however often it is sent,
	// and found again in a turn that another client or owner started.
	key       string
	turn      string // "" while it waits
	queued    string // its place in the thread's queue
	command   bool   // a turn without a message of the user's
	cancelled bool
}

// prompt gives a message to the thread: as a turn, or into the queue of a busy one.
func (s *session) prompt(req *jsonrpc.Request, content []block) {
	in, err := inputs(content)
	if err != nil {
		_ = req.Error(toWire(err))
		return
	}
	p := &prompt{req: req, key: "acp-" + thole.NewID[string](time.Now())}
	if done, err := s.slash(p, in); done {
		if err != nil {
			_ = req.Error(toWire(err))
			return
		}
		s.prompts = append(s.prompts, p)
		return
	}
	s.own[p.key] = true
	started, err := call[app.TurnResult](s.ctx, s.srv.owner, "thole/turn/startIfIdle", app.TurnStartParams{
		ThreadID: s.id, Input: in, ClientUserMessageID: &p.key, IdempotencyKey: p.key,
	})
	p.turn = started.Turn.ID
	if class(err) == thole.CodeBusy {
		err = s.enqueue(p, in)
	}
	if err != nil {
		_ = req.Error(toWire(err))
		return
	}
	s.prompts = append(s.prompts, p)
	if title := firstLine(in); !s.titled && title != "" {
		s.titled = true
		s.update(object{"sessionUpdate": "session_info_update", "title": title, "updatedAt": stamp(time.Now().Unix())})
	}
}

// firstLine is what a message is called by, "" when it has no text.
func firstLine(in []app.UserInput) string {
	for _, part := range in {
		if title := oneLine(part.Text, 80); title != "" {
			return title
		}
	}
	return ""
}

// enqueue lets a message wait. A connection that ended leaves open whether it does: it is
// looked for before it is sent again.
func (s *session) enqueue(p *prompt, in []app.UserInput) error {
	for try := 0; ; try++ {
		if try > 0 {
			if found, err := s.find(p); err != nil || found {
				return err
			}
		}
		got, err := once[app.QueueResult](s.ctx, s.srv.owner, "thread/queue/add", app.QueueAddParams{ThreadID: s.id, Input: in, ClientUserMessageID: p.key})
		if err == nil {
			p.queued = got.QueuedSubmission.ID
			return nil
		}
		if !errors.Is(err, appclient.ErrClosed) || try == maxRefused {
			return err
		}
	}
}

// find looks for a message in the thread's queue and in its newest turns.
func (s *session) find(p *prompt) (bool, error) {
	queue, err := call[app.QueueListResult](s.ctx, s.srv.owner, "thread/queue/list", app.ThreadParams{ThreadID: s.id})
	if err != nil {
		return false, err
	}
	for _, q := range queue.Data {
		if q.ClientUserMessageID == p.key {
			p.queued = q.ID
			return true, nil
		}
	}
	limit, full := 5, app.ItemsFull
	page, err := call[app.TurnsPage](s.ctx, s.srv.owner, "thread/turns/list", app.TurnsListParams{ThreadID: s.id, PageParams: app.PageParams{Limit: &limit}, ItemsView: &full})
	if err != nil {
		return false, err
	}
	for i := range page.Data {
		t := &page.Data[i]
		for _, it := range t.Items {
			if str(it.ClientID) == p.key {
				p.turn = t.ID
				return true, nil
			}
		}
	}
	return false, nil
}

// queueChanged looks after messages that wait: one that another client took out of the
// queue will have no turn.
func (s *session) queueChanged() {
	for _, p := range slices.Clone(s.prompts) {
		if p.turn != "" || p.queued == "" {
			continue
		}
		if found, err := s.find(p); err == nil && !found {
			s.answer(p, "cancelled")
		}
	}
}

// turnEnded ends what waited for the turn. A user's stop holds the queue back; a message
// of this editor is not part of what was stopped.
func (s *session) turnEnded(t *app.Turn) {
	mine := s.turn(t.ID)
	s.cutOff(mine)
	for _, p := range slices.Clone(s.prompts) {
		if p.turn == "" && p.command && !mine.said {
			p.turn = t.ID
			mine.said = true // one command for each turn
		}
		if p.turn == t.ID {
			s.finish(p, t)
		}
	}
	mine.over = true
	if t.Status != app.TurnInterrupted {
		return
	}
	for _, p := range s.prompts {
		if p.turn == "" && p.queued != "" {
			_, _ = call[app.TurnResult](s.ctx, s.srv.owner, "thread/queue/start", app.QueueParams{ThreadID: s.id, QueuedSubmissionID: &p.queued})
			return
		}
	}
}

// reconcile ends prompts whose turns ended while nobody said so.
func (s *session) reconcile() {
	limit := 50
	page, err := call[app.TurnsPage](s.ctx, s.srv.owner, "thread/turns/list", app.TurnsListParams{ThreadID: s.id, PageParams: app.PageParams{Limit: &limit}})
	if err != nil {
		return
	}
	for i := len(page.Data) - 1; i >= 0; i-- {
		if t := &page.Data[i]; t.Status != app.TurnInProgress {
			for _, p := range slices.Clone(s.prompts) {
				if p.turn == t.ID {
					s.finish(p, t)
				}
			}
		}
	}
	s.queueChanged()
}

// finish answers a prompt with its turn's end.
func (s *session) finish(p *prompt, t *app.Turn) {
	switch {
	case p.cancelled || t.Status == app.TurnInterrupted:
		s.answer(p, "cancelled")
	case t.Status == app.TurnCompleted:
		s.answer(p, "end_turn")
	default:
		s.fail(p, t.Error)
	}
}

func (s *session) answer(p *prompt, reason string) {
	s.forget(p)
	_ = p.req.Reply(object{"stopReason": reason})
}

func (s *session) forget(p *prompt) {
	s.prompts = slices.DeleteFunc(s.prompts, func(o *prompt) bool { return o == p })
}

// fail answers with why a turn failed. What the protocol has a stop reason for is one,
// after a sentence that says what happened.
func (s *session) fail(p *prompt, e *app.TurnError) {
	if e == nil {
		e = &app.TurnError{Message: "the turn failed"}
	}
	text, hint, why := e.Message, str(e.Details), errorClass(e)
	switch why {
	case string(thole.ErrModelRefused):
		s.warn(text)
		s.answer(p, "refusal")
		return
	case string(thole.ErrContextTooLong):
		s.warn(text)
		s.answer(p, "max_tokens")
		return
	}
	code := int64(jsonrpc.CodeInternal)
	if why == string(thole.ErrAuth) {
		code = codeAuth
	}
	s.forget(p)
	_ = p.req.Error(withData(code, text, hint, why))
}

func errorClass(e *app.TurnError) string {
	if e.Thole != nil {
		return e.Thole.Code
	}
	return ""
}

// cancelAll stops what the editor waits for: its messages that wait are taken back, its
// turn is interrupted. An editor that waits for nothing stops the turn that it watches.
func (s *session) cancelAll() {
	if len(s.prompts) == 0 {
		_, _ = call[app.Empty](s.ctx, s.srv.owner, "turn/interrupt", app.TurnInterruptParams{ThreadID: s.id})
		return
	}
	for _, p := range slices.Clone(s.prompts) {
		s.cancelPrompt(p)
	}
}

func (s *session) cancelPrompt(p *prompt) {
	p.cancelled = true
	if p.turn == "" && p.queued != "" {
		got, err := call[app.DeletedResult](s.ctx, s.srv.owner, "thread/queue/delete", app.QueueParams{ThreadID: s.id, QueuedSubmissionID: &p.queued})
		if err == nil && got.Deleted {
			s.answer(p, "cancelled")
			return
		}
		_, _ = s.find(p)
	}
	if p.turn == "" && !p.command {
		return
	}
	_, err := call[app.Empty](s.ctx, s.srv.owner, "turn/interrupt", app.TurnInterruptParams{ThreadID: s.id, TurnID: p.turn})
	if err != nil && class(err) != thole.CodeConflict {
		s.warn("The turn could not be stopped: " + err.Error())
	}
}

// cancelRequest is the cancellation of one request by its id.
func (s *session) cancelRequest(id jsonrpc.ID) {
	for _, p := range slices.Clone(s.prompts) {
		if p.req.ID == id {
			s.cancelPrompt(p)
		}
	}
}

// close takes back what the editor waits for; the thread stays, and turns of others go on.
func (s *session) close(req *jsonrpc.Request) {
	if len(s.prompts) > 0 {
		s.cancelAll()
	}
	for _, p := range slices.Clone(s.prompts) {
		s.answer(p, "cancelled")
	}
	for id := range s.asks {
		s.withdraw(s.id + "/" + id)
	}
	_ = req.Reply(object{})
	s.cancel()
}
