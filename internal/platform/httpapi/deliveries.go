package httpapi

import (
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/wire"
)

// call asks the delivery side. Its views are those of the command line, so that
// both show the same.
func call[R any](ctx context.Context, s *Server, method string, params any) (R, error) {
	return callAs[R](ctx, s, actorOf(ctx), method, params)
}

func callAs[R any](ctx context.Context, s *Server, actor thole.Actor, method string, params any) (R, error) {
	var zero R
	if s.cfg.Deliveries == nil {
		return zero, thole.Errorf(thole.CodeUnavailable, "this server delivers no background results")
	}
	m := s.cfg.Deliveries(method)
	if m == nil {
		return zero, thole.Errorf(thole.CodeUnavailable, "this server does not answer %s", method)
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return zero, err
	}
	v, err := m(ctx, actor, raw)
	if err != nil {
		return zero, err
	}
	r, ok := v.(R)
	if !ok {
		return zero, thole.Errorf(thole.CodeInternal, "%s answered with a %T", method, v)
	}
	return r, nil
}

func listed[T any](all []T, err error) (*body[list[T]], error) {
	if all == nil {
		all = []T{}
	}
	return answer(list[T]{Items: all}, err)
}

type LimitIn struct {
	Limit int `query:"limit" minimum:"0" maximum:"1000" doc:"200 when absent"`
}

// Walk is how lists of deliveries are paged: the cursor is the id of the last entry.
type Walk struct {
	LimitIn
	Cursor string `query:"cursor" format:"uuid" doc:"from a list's next"`
}

// walked gives a full page the cursor after it.
func walked[T any](w Walk, all []T, err error, id func(T) string) (*body[list[T]], error) {
	out, err := listed(all, err)
	if err == nil && len(all) == w.limit() {
		out.Body.Next = id(all[len(all)-1])
	}
	return out, err
}

func jobOf(j wire.Job) string     { return j.JobID }
func batchOf(b wire.Batch) string { return b.BatchID }

func (l LimitIn) limit() int {
	if l.Limit == 0 {
		return 200
	}
	return l.Limit
}

func (s *Server) deliveryRoutes() {
	op(s, "GET", "/jobs", "List background jobs, newest first", 200, func(ctx context.Context, in *struct {
		Walk
		Session string `query:"session_id"`
		Status  string `query:"status" enum:"running,ready,failed,cancelled"`
	}) (*body[list[wire.Job]], error) {
		all, err := call[[]wire.Job](ctx, s, wire.JobList, wire.JobListParams{ThreadID: in.Session, Status: in.Status, After: in.Cursor, Limit: in.limit()})
		return walked(in.Walk, all, err, jobOf)
	})
	op(s, "GET", "/sessions/{session_id}/jobs", "List the background jobs of a session", 200, func(ctx context.Context, in *struct {
		SessionID
		Walk
	}) (*body[list[wire.Job]], error) {
		th, err := s.cfg.Threads.Get(ctx, actorOf(ctx), in.thread())
		if err != nil {
			return nil, err
		}
		reader := actorOf(ctx) // who may read a thread may read its jobs, which are its owner's
		reader.User = th.Owner.User
		all, err := callAs[[]wire.Job](ctx, s, reader, wire.JobList, wire.JobListParams{ThreadID: in.ID, After: in.Cursor, Limit: in.limit()})
		return walked(in.Walk, all, err, jobOf)
	})
	type jobID struct {
		ID string `path:"job_id" format:"uuid"`
	}
	op(s, "GET", "/jobs/{job_id}", "Read a job with its batch", 200, func(ctx context.Context, in *jobID) (*body[wire.Job], error) {
		return answer(call[wire.Job](ctx, s, wire.JobQuery, wire.JobParams{JobID: in.ID}))
	})
	s.reportRoutes()
	op(s, "POST", "/jobs/{job_id}/cancel", "Cancel a job", 200, func(ctx context.Context, in *jobID) (*body[wire.Job], error) {
		return answer(call[wire.Job](ctx, s, wire.JobCancel, wire.FinishParams{JobID: in.ID, RequestID: traceOf(ctx), Reason: "cancelled over HTTP"}))
	})
	op(s, "GET", "/batches", "List batches, newest first", 200, func(ctx context.Context, in *struct {
		Walk
		Session string `query:"session_id"`
		Open    bool   `query:"open"`
		Held    bool   `query:"held"`
	}) (*body[list[wire.Batch]], error) {
		all, err := call[[]wire.Batch](ctx, s, wire.BatchList, wire.BatchListParams{ThreadID: in.Session, Open: in.Open, Held: in.Held, After: in.Cursor, Limit: in.limit()})
		return walked(in.Walk, all, err, batchOf)
	})
	type BatchID struct {
		ID string `path:"batch_id" format:"uuid"`
	}
	op(s, "GET", "/batches/{batch_id}", "The whole story of a batch", 200, func(ctx context.Context, in *BatchID) (*body[wire.Batch], error) {
		return answer(call[wire.Batch](ctx, s, wire.BatchInspect, wire.BatchParams{BatchID: in.ID}))
	})
	op(s, "POST", "/batches/{batch_id}/close", "Decide about the first batch of a thread", 200, func(ctx context.Context, in *struct {
		BatchID
		Body struct {
			Reason string `json:"reason" enum:"operator_confirmed_delivery,operator_closed_unconfirmed,cancelled"`
		}
	}) (*body[wire.Batch], error) {
		b, err := call[wire.Batch](ctx, s, wire.BatchInspect, wire.BatchParams{BatchID: in.ID})
		if err != nil {
			return nil, err
		}
		return answer(call[wire.Batch](ctx, s, wire.BatchClose, wire.BatchParams{
			BatchID: in.ID, SourceThreadID: b.SourceThreadID, Endpoint: b.Endpoint, Reason: in.Body.Reason,
		}))
	})
	op(s, "POST", "/batches/{batch_id}/deliver", "Send a batch that is held for a human", 200, func(ctx context.Context, in *struct {
		BatchID
		Body struct {
			Anyway bool `json:"anyway,omitempty" doc:"send it although it may have reached the thread already"`
		}
	}) (*body[wire.Batch], error) {
		return answer(call[wire.Batch](ctx, s, wire.BatchDeliver, wire.DeliverParams{BatchID: in.ID, Anyway: in.Body.Anyway}))
	})
	op(s, "GET", "/ledger", "What was decided about deliveries and by which proof", 200, func(ctx context.Context, in *struct {
		LimitIn
		Job     string `query:"job_id"`
		Batch   string `query:"batch_id"`
		Session string `query:"session_id"`
	}) (*body[list[wire.Audit]], error) {
		return listed(call[[]wire.Audit](ctx, s, wire.AuditList, wire.AuditParams{JobID: in.Job, BatchID: in.Batch, SourceThreadID: in.Session, Limit: in.limit()}))
	})
}
