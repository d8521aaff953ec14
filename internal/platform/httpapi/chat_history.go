package httpapi

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/chat"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
)

// chatInfo is a chat in the history list.
type chatInfo struct {
	ID        string          `json:"id"`
	Title     string          `json:"title"`
	Provider  string          `json:"provider"`
	CreatedAt time.Time       `json:"createdAt"`
	UpdatedAt time.Time       `json:"updatedAt"`
	Active    bool            `json:"active"`
	Messages  []*chat.Message `json:"messages,omitempty"`
	Next      string          `json:"next,omitempty"`
}

func chatOf(t fold.Thread) chatInfo {
	title := t.Name
	if title == "" {
		title = t.Preview
	}
	return chatInfo{ID: string(t.ID), Title: title, Provider: t.Settings.Provider, CreatedAt: t.Created, UpdatedAt: t.Updated, Active: t.Status.Active}
}

func (s *Server) chatHistoryRoutes(base, provider string) {
	s.mux.HandleFunc("GET "+base, func(w http.ResponseWriter, r *http.Request) { s.chats(w, r, base) })
	s.mux.HandleFunc("POST "+base, func(w http.ResponseWriter, r *http.Request) { s.newChat(w, r, provider) })
	s.mux.HandleFunc("GET "+base+"/{chat_id}", s.chatMessages)
}

func pageOf(r *http.Request) (thread.PageParams, error) {
	q := r.URL.Query()
	p := PageIn{Cursor: q.Get("cursor")}
	if v := q.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > 200 {
			return thread.PageParams{}, thole.Errorf(thole.CodeInvalid, "limit is %q, want 1 to 200", v)
		}
		p.Limit = n
	}
	p.Order = "desc"
	return p.params(), nil
}

func (s *Server) chats(w http.ResponseWriter, r *http.Request, base string) {
	p, err := pageOf(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	page, err := s.cfg.Threads.List(r.Context(), actorOf(r.Context()), thread.Filter{PageParams: p})
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if page.Next != "" {
		w.Header().Set("Link", "<"+base+"?cursor="+url.QueryEscape(page.Next)+">; rel=\"next\"")
	}
	out := make([]chatInfo, 0, len(page.Items))
	for _, t := range page.Items {
		out = append(out, chatOf(t))
	}
	writeJSON(w, http.StatusOK, out)
}

func (s *Server) newChat(w http.ResponseWriter, r *http.Request, provider string) {
	var in struct {
		ID               string `json:"id"`
		Title            string `json:"title"`
		Provider         string `json:"provider"`
		Model            string `json:"model"`
		ExecutionProfile string `json:"executionProfile"`
	}
	if err := strictjson.Read(r.Body, &in); err != nil && !errors.Is(err, io.EOF) {
		s.refuse(w, r, thole.Errorf(thole.CodeInvalid, "the body is not the JSON of a chat: %w", err))
		return
	}
	p := thread.Create{Name: in.Title, Settings: event.Settings{Provider: table.Named(in.Provider), Model: in.Model, Profile: thole.Profile(in.ExecutionProfile)}}
	if p.Settings.Provider == "" {
		p.Settings.Provider = provider
	}
	if in.ID != "" {
		p.ID = chat.ThreadID(actorOf(r.Context()).User, in.ID)
	}
	t, err := s.create(r.Context(), p, r.Header.Get("Idempotency-Key"))
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	writeJSON(w, http.StatusCreated, chatOf(t))
}

func (s *Server) chatMessages(w http.ResponseWriter, r *http.Request) {
	p, err := pageOf(r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	page, th, err := s.messages(r.Context(), chat.ThreadID(actorOf(r.Context()).User, r.PathValue("chat_id")), p)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	out := chatOf(th)
	out.Messages, out.Next = page.Items, page.Next
	if out.Messages == nil {
		out.Messages = []*chat.Message{}
	}
	writeJSON(w, http.StatusOK, struct {
		chatInfo
		Messages []*chat.Message `json:"messages"`
	}{out, out.Messages})
}
