package appserver

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

func (s *Server) registerQueue() {
	byQueue := func(p *app.QueueParams) string { return p.ThreadID }
	inThread(on(s, "thread/queue/add", s.queueAdd), serial.Exclusive, func(p *app.QueueAddParams) string { return p.ThreadID })
	inThread(on(s, "thread/queue/list", s.queueList), serial.Shared, func(p *app.QueueListParams) string { return p.ThreadID })
	inThread(on(s, "thread/queue/update", s.queueUpdate), serial.Exclusive, func(p *app.QueueUpdateParams) string { return p.ThreadID })
	inThread(on(s, "thread/queue/delete", s.queueDelete), serial.Exclusive, byQueue)
	inThread(on(s, "thread/queue/reorder", s.queueReorder), serial.Exclusive, func(p *app.QueueReorderParams) string { return p.ThreadID })
	inThread(on(s, "thread/queue/start", s.queueStart), serial.Exclusive, byQueue)
	inThread(on(s, "thole/queue/promote", s.queuePromote), serial.Exclusive, byQueue)
}

func (s *Server) queueAdd(ctx context.Context, c *conn, p *app.QueueAddParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	in, err := s.inputs(ctx, c, id, p.Input)
	if err != nil {
		return answer{}, err
	}
	m, err := s.cfg.Threads.Enqueue(ctx, c.who(), thread.Enqueue{Thread: id, Input: in, ClientID: p.ClientUserMessageID, Start: true})
	return result(app.QueueResult{QueuedSubmission: queued(m)}, err)
}

func (s *Server) queueList(ctx context.Context, c *conn, p *app.QueueListParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	out, err := s.queueNow(ctx, c, id)
	if err == nil {
		out.Data, out.NextCursor, err = paged(out.Data, p.ListParams)
	}
	return result(out, err)
}

func (s *Server) queueNow(ctx context.Context, c *conn, id thole.ThreadID) (app.QueueListResult, error) {
	list, err := s.cfg.Threads.Queue(ctx, c.who(), id)
	return app.QueueListResult{Data: submissions(list)}, err
}

func submissions(list []event.Message) []app.QueuedSubmission {
	out := make([]app.QueuedSubmission, 0, len(list))
	for _, m := range list {
		out = append(out, queued(m))
	}
	return out
}

func (s *Server) queueUpdate(ctx context.Context, c *conn, p *app.QueueUpdateParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	in, err := s.inputs(ctx, c, id, p.Input)
	if err != nil {
		return answer{}, err
	}
	m, err := s.cfg.Threads.EditQueued(ctx, c.who(), id, thole.MessageID(p.QueuedSubmissionID), in)
	return result(app.QueueResult{QueuedSubmission: queued(m)}, err)
}

func (s *Server) queueDelete(ctx context.Context, c *conn, p *app.QueueParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	if p.QueuedSubmissionID == nil {
		return answer{}, invalid("missing field `queuedSubmissionId`")
	}
	removed, err := s.cfg.Threads.RemoveQueued(ctx, c.who(), id, thole.MessageID(*p.QueuedSubmissionID))
	return result(app.DeletedResult{Deleted: removed}, err)
}

func (s *Server) queueReorder(ctx context.Context, c *conn, p *app.QueueReorderParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	order := make([]thole.MessageID, len(p.QueuedSubmissionIDs))
	for i, m := range p.QueuedSubmissionIDs {
		order[i] = thole.MessageID(m)
	}
	return result(app.Empty{}, s.cfg.Threads.ReorderQueued(ctx, c.who(), id, order))
}

func (s *Server) queueStart(ctx context.Context, c *conn, p *app.QueueParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	t, err := s.cfg.Threads.StartQueued(ctx, c.who(), id, thole.MessageID(str(p.QueuedSubmissionID)))
	return result(app.TurnResult{Turn: accepted(t)}, err)
}

func (s *Server) queuePromote(ctx context.Context, c *conn, p *app.QueueParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	if p.QueuedSubmissionID == nil {
		return answer{}, invalid("missing field `queuedSubmissionId`")
	}
	t, err := s.cfg.Threads.PromoteQueued(ctx, c.who(), id, thole.MessageID(*p.QueuedSubmissionID))
	return result(app.TurnResult{Turn: accepted(t)}, err)
}
