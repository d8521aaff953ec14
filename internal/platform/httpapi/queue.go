package httpapi

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/chat"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/thread"
)

type QueuedID struct {
	SessionID
	Message string `path:"message_id"`
}

// keyedMessage is the message that a request with a key makes, so that a repeat finds it.
func keyedMessage(ctx context.Context, scope, key string) thole.MessageID {
	if key == "" {
		return ""
	}
	return thole.MessageID(chat.NamedID("message", string(actorOf(ctx).User), scope, key))
}

func messageTag(m event.Message) string { return sum([]any{m.ID, m.Input}) }

func orderTag(all []event.Message) string {
	ids := make([]thole.MessageID, len(all))
	for i, m := range all {
		ids[i] = m.ID
	}
	return sum(ids)
}

func taggedMessage(m event.Message, err error) (*tagged[view.QueuedMessage], error) {
	if err != nil {
		return nil, err
	}
	return &tagged[view.QueuedMessage]{messageTag(m), view.OfMessage(m)}, nil
}

func (s *Server) queueRoutes() {
	op(s, "GET", "/sessions/{session_id}/queue", "List the messages that wait", 200, func(ctx context.Context, in *SessionID) (*tagged[list[view.QueuedMessage]], error) {
		return s.queue(ctx, in.thread())
	})
	op(s, "POST", "/sessions/{session_id}/queue", "Queue a message", 201, func(ctx context.Context, in *struct {
		SessionID
		KeyIn
		Body struct {
			Message
			Start bool `json:"start,omitempty" doc:"run it at once if the session is idle"`
		}
	}) (*tagged[view.QueuedMessage], error) {
		input, err := in.Body.input()
		if err != nil {
			return nil, err
		}
		return taggedMessage(once(ctx, s, "POST /sessions/"+in.ID+"/queue", in.Key, in.Body, func() (event.Message, error) {
			return s.cfg.Threads.Enqueue(ctx, actorOf(ctx), thread.Enqueue{Thread: in.thread(), ID: keyedMessage(ctx, in.ID, in.Key), Input: input, ClientID: in.Body.ClientID, Start: in.Body.Start})
		}))
	})
	op(s, "PATCH", "/sessions/{session_id}/queue/{message_id}", "Edit a queued message", 200, func(ctx context.Context, in *struct {
		QueuedID
		MatchIn
		Body Message
	}) (*tagged[view.QueuedMessage], error) {
		input, err := in.Body.input()
		if err != nil {
			return nil, err
		}
		return taggedMessage(s.cfg.Threads.EditQueued(ctx, actorOf(ctx), in.thread(), thole.MessageID(in.Message), input, unless(in.MatchIn, messageTag)))
	})
	op(s, "DELETE", "/sessions/{session_id}/queue/{message_id}", "Remove a queued message", 204, func(ctx context.Context, in *struct {
		QueuedID
		MatchIn
	}) (*empty, error) {
		removed, err := s.cfg.Threads.RemoveQueued(ctx, actorOf(ctx), in.thread(), thole.MessageID(in.Message), unless(in.MatchIn, messageTag))
		if err == nil && !removed {
			err = thole.Errorf(thole.CodeNotFound, "no queued message %s", in.Message).WithHint("it may have started to run")
		}
		return done(err)
	})
	op(s, "PUT", "/sessions/{session_id}/queue/order", "Put the queue in another order", 200, func(ctx context.Context, in *struct {
		SessionID
		MatchIn
		Body struct {
			Order []string `json:"order" doc:"every queued message once"`
		}
	}) (*tagged[list[view.QueuedMessage]], error) {
		order := view.Each(in.Body.Order, func(id string) thole.MessageID { return thole.MessageID(id) })
		if err := s.cfg.Threads.ReorderQueued(ctx, actorOf(ctx), in.thread(), order, unless(in.MatchIn, orderTag)); err != nil {
			return nil, err
		}
		return s.queue(ctx, in.thread())
	})
	op(s, "POST", "/sessions/{session_id}/queue/{message_id}/promote", "Steer the running run with a queued message", 202, func(ctx context.Context, in *QueuedID) (*body[view.Run], error) {
		return runAnswer(s.cfg.Threads.PromoteQueued(ctx, actorOf(ctx), in.thread(), thole.MessageID(in.Message)))
	})
	op(s, "POST", "/sessions/{session_id}/queue/{message_id}/start", "Run a queued message now; one that runs or ran already is its run", 201, func(ctx context.Context, in *QueuedID) (*body[view.Run], error) {
		t, err := s.cfg.Threads.StartQueued(ctx, actorOf(ctx), in.thread(), thole.MessageID(in.Message))
		if thole.CodeOf(err) == thole.CodeNotFound || thole.CodeOf(err) == thole.CodeBusy {
			if ran, rerr := s.cfg.Threads.Turn(ctx, actorOf(ctx), in.thread(), thole.TurnID(in.Message)); rerr == nil {
				return runAnswer(ran, nil)
			}
		}
		return runAnswer(t, err)
	})
}

func (s *Server) queue(ctx context.Context, id thole.ThreadID) (*tagged[list[view.QueuedMessage]], error) {
	all, err := s.cfg.Threads.Queue(ctx, actorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return &tagged[list[view.QueuedMessage]]{orderTag(all), list[view.QueuedMessage]{Items: view.Each(all, view.OfMessage)}}, nil
}
