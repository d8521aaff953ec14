package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/chat"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/thread"
)

// chatHeader marks the protocol for its clients.
var chatHeader = map[string]string{"X-Vercel-Ai-Ui-Message-Stream": "v1"}

func (s *Server) chatRoutes() {
	chunks := page{Route: Route{Text: true}, status: 200, media: "text/event-stream", shapes: []any{chat.Chunk{}}}
	post, resume, stop := chunks, chunks, page{Route: Route{Text: true}, summary: "Stop the running answer", status: 204}
	post.summary, post.body, post.header = "Say something, run it again or answer approvals; the answer is streamed", chat.Request{}, []string{"Idempotency-Key"}
	resume.summary, resume.query, resume.nothing = "Stream the running answer from its start", []string{"approvals"}, true
	bases := map[string]string{"/api/chat": ""}
	for _, c := range table.CLIs {
		if c.Chat {
			bases["/api/chat-"+c.Name] = c.Name
		}
	}
	for base, provider := range bases {
		s.serve("POST "+base, post, func(w http.ResponseWriter, r *http.Request) { s.postChat(w, r, provider) })
		s.serve("GET "+base+"/{chat_id}/stream", resume, s.resumeChat)
		s.serve("POST "+base+"/{chat_id}/stop", stop, s.stopChat)
		s.chatHistoryRoutes(base+"-history", provider)
	}
}

// postChat starts a run, runs the last message again, or takes approvals.
func (s *Server) postChat(w http.ResponseWriter, r *http.Request, provider string) {
	data, err := readBody(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	req, err := chat.Decode(data)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	id, err := s.branchOf(r.Context(), chat.ThreadID(actorOf(r.Context()).User, req.ID), req)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if last := req.Last(); last.Role == "assistant" && req.Trigger != "regenerate-message" {
		s.postVerdicts(w, r, id, req, last)
		return
	}
	turn, err := s.startChat(r, id, req, provider)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.streamChat(w, r, chat.NewEncoder(turn), turn, req.Approvals != "stream")
}

func (s *Server) startChat(r *http.Request, id thole.ThreadID, req *chat.Request, provider string) (fold.Turn, error) {
	ctx, actor := r.Context(), actorOf(r.Context())
	said := req.LastUser()
	if said == nil {
		return fold.Turn{}, thole.Errorf(thole.CodeInvalid, "user message is missing")
	}
	input, err := said.Input()
	if err != nil {
		return fold.Turn{}, err
	}
	settings, err := req.Settings()
	if err != nil {
		return fold.Turn{}, err
	}
	if settings != nil {
		if err := s.usable(settings.Provider); err != nil {
			return fold.Turn{}, err
		}
	}
	key := r.Header.Get("Idempotency-Key")
	p := thread.StartTurn{Thread: id, Input: input, ClientID: said.ID, Settings: settings, Trace: traceOf(ctx), Idempotency: key}
	message, err := req.Again(said)
	if err != nil {
		return fold.Turn{}, err
	}
	if message != "" {
		turn, err := s.rerun(ctx, id, req, message, p)
		if message != said.ID || !errors.Is(err, errNoMessage) && thole.CodeOf(err) != thole.CodeNotFound {
			return turn, err
		} // else it never arrived here, and is new
	}
	turn, err := s.cfg.Threads.StartTurn(ctx, actor, p)
	if thole.CodeOf(err) != thole.CodeNotFound || req.Existing {
		return turn, err
	}
	born := thread.Create{ID: id, Settings: event.Settings{Provider: provider}}
	if settings != nil {
		born.Settings = *settings
		if born.Settings.Provider == "" {
			born.Settings.Provider = provider
		}
	}
	from := req.Source
	if from != nil && from.Name == "" {
		named := *from
		named.Name = input[0].Text
		from = &named
	}
	if _, err := s.create(ctx, born, from, ""); err != nil && thole.CodeOf(err) != thole.CodeConflict {
		return fold.Turn{}, err
	}
	return s.cfg.Threads.StartTurn(ctx, actor, p)
}

// postVerdicts answers approvals with the message that the client posted back and
// goes on with that message.
func (s *Server) postVerdicts(w http.ResponseWriter, r *http.Request, id thole.ThreadID, req *chat.Request, m *chat.ClientMessage) {
	ctx, actor := r.Context(), actorOf(r.Context())
	th, err := s.cfg.Threads.Get(ctx, actor, id)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	turn, err := s.cfg.Threads.Turn(ctx, actor, id, thole.TurnID(m.ID))
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	asks, err := s.cfg.Threads.Asks(ctx, actor, id, true)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	waiting := map[thole.AskID]bool{}
	for _, a := range asks {
		waiting[a.Ask.ID] = a.Turn == turn.ID
	}
	given := 0
	for _, v := range m.Verdicts() {
		if !waiting[v.Ask] {
			continue // of an earlier step, or settled elsewhere meanwhile
		}
		if _, err := s.cfg.Threads.Answer(ctx, actor, id, v.Ask, v.Answer); err != nil && thole.CodeOf(err) != thole.CodeConflict {
			s.refuse(w, r, err)
			return
		}
		given++
	}
	if given == 0 && len(m.Verdicts()) == 0 {
		s.refuse(w, r, thole.Errorf(thole.CodeInvalid, "the last message is the agent's and answers nothing").WithHint("send a message of the user"))
		return
	}
	at := m.At()
	if at.Seq < turn.Seq || at.Seq > th.Seq { // not ours to trust: take what there was before the answer
		at = chat.Metadata{Seq: th.Seq}
	}
	s.streamChat(w, r, chat.Continue(turn, at), turn, req.Approvals != "stream")
}

// streamChat sends a turn from its start, or from where the encoder goes on.
func (s *Server) streamChat(w http.ResponseWriter, r *http.Request, e *chat.Encoder, turn fold.Turn, cut bool) {
	if cut {
		e.Posts()
	}
	after := turn.Seq - 1
	sub, err := s.cfg.Threads.Subscribe(r.Context(), actorOf(r.Context()), turn.Thread, thread.SubscribeOptions{After: &after})
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	defer func() { sub.Close() }()
	s.streams.Add(1)
	defer s.streams.Done()
	st := s.newStream(w, r, chatHeader)
	if st == nil {
		return
	}
	w.WriteHeader(http.StatusOK)
	if st.flush() != nil { // the headers, before anything happens
		return
	}
	alive := time.NewTicker(s.cfg.KeepAlive)
	defer alive.Stop()
	for {
		select {
		case batch, ok := <-sub.Events:
			if !ok {
				if sub = s.again(st, r, sub, turn, after); sub == nil {
					return
				}
				continue
			}
			st.pace()
			after = feed(e, batch, sub.Events, after)
		case <-alive.C:
			if !s.stillIn(r) {
				panic(http.ErrAbortHandler) // the run goes on, unseen
			}
			st.comment("alive")
			if st.flush() != nil {
				return
			}
			continue
		case <-r.Context().Done():
			return // the client went away; the run goes on
		case <-s.stopping:
			panic(http.ErrAbortHandler) // a clean end would look like success
		}
		write(st, e.Take())
		if cut && e.Blocked() {
			write(st, e.Cut())
		}
		if e.Ended() {
			st.buf = append(st.buf, "data: [DONE]\n\n"...)
		}
		if st.flush() != nil || e.Ended() {
			return
		}
	}
}

// feed takes a batch and what else there is by now.
func feed(e *chat.Encoder, batch *thread.Batch, more <-chan *thread.Batch, after uint64) uint64 {
	for {
		for _, ev := range batch.Events {
			if ev.Seq > 0 {
				after = ev.Seq
			}
			e.Event(ev)
		}
		select {
		case next, ok := <-more:
			if !ok {
				return after
			}
			batch = next
		default:
			return after
		}
	}
}

func write(st *stream, chunks []chat.Chunk) {
	for i := range chunks {
		b, err := json.Marshal(&chunks[i])
		if err != nil {
			panic("httpapi: encode chunk: " + err.Error())
		}
		st.data(b)
	}
}

// again goes on after a subscription that ended: a reader that fell behind reads
// on from where it is. nil: the stream is over.
func (s *Server) again(st *stream, r *http.Request, old *thread.Subscription, turn fold.Turn, after uint64) *thread.Subscription {
	err := old.Err()
	if errors.Is(err, thread.ErrSlow) {
		sub, serr := s.cfg.Threads.Subscribe(r.Context(), actorOf(r.Context()), turn.Thread, thread.SubscribeOptions{After: &after})
		if serr == nil {
			return sub
		}
		err = serr
	}
	if c := thole.CodeOf(err); c == thole.CodeGone || c == thole.CodeNotFound {
		write(st, []chat.Chunk{{Type: "error", ErrorText: "the chat was deleted"}})
		st.buf = append(st.buf, "data: [DONE]\n\n"...)
		_ = st.flush()
		return nil
	}
	panic(http.ErrAbortHandler)
}

// resumeChat shows the running answer again from its start.
func (s *Server) resumeChat(w http.ResponseWriter, r *http.Request) {
	turn, err := s.openTurn(r.Context(), chat.ThreadID(actorOf(r.Context()).User, r.PathValue("chat_id")))
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if turn.ID == "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.streamChat(w, r, chat.NewEncoder(turn), turn, r.URL.Query().Get("approvals") == "post")
}

// openTurn is the running turn of a chat, the zero Turn when it is idle or does
// not exist yet.
func (s *Server) openTurn(ctx context.Context, id thole.ThreadID) (fold.Turn, error) {
	th, err := s.cfg.Threads.Get(ctx, actorOf(ctx), id)
	if thole.CodeOf(err) == thole.CodeNotFound {
		return fold.Turn{}, s.cfg.Threads.Gone(ctx, actorOf(ctx), id)
	}
	if err == nil && th.Open == "" {
		return fold.Turn{}, nil
	}
	if err != nil {
		return fold.Turn{}, err
	}
	return s.cfg.Threads.Turn(ctx, actorOf(ctx), id, th.Open)
}

func (s *Server) stopChat(w http.ResponseWriter, r *http.Request) {
	turn, err := s.openTurn(r.Context(), chat.ThreadID(actorOf(r.Context()).User, r.PathValue("chat_id")))
	if err == nil && turn.ID != "" {
		err = s.cfg.Threads.Interrupt(r.Context(), actorOf(r.Context()), turn.Thread, turn.ID)
		if thole.CodeOf(err) == thole.CodeConflict {
			err = nil // it ended by itself just now
		}
	}
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
