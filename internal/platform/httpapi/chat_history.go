package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
	"github.com/tholehq/thole/internal/platform/chat"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/thread"
)

// ChatInfo is a chat in the history list.
type ChatInfo struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	Provider  string    `json:"provider"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
	Active    bool      `json:"active"`
}

// chatPage is a chat with a page of its messages.
type chatPage struct {
	ChatInfo
	Messages []*chat.Message `json:"messages"`
	Next     string          `json:"next,omitempty"`
}

// chatIn is a chat to make.
type chatIn struct {
	ID               string             `json:"id,omitempty"`
	Title            string             `json:"title,omitempty"`
	Provider         string             `json:"provider,omitempty"`
	Model            string             `json:"model,omitempty"`
	ExecutionProfile string             `json:"executionProfile,omitempty"`
	Source           *view.SourceChoice `json:"source,omitempty"`
}

func chatOf(t fold.Thread) ChatInfo {
	return ChatInfo{ID: string(t.ID), Title: t.Title(), Provider: t.Settings.Provider, CreatedAt: t.Created, UpdatedAt: t.Updated, Active: t.Status.Active}
}

func (s *Server) chatHistoryRoutes(base, provider string) {
	pages, json := []string{"cursor", "limit"}, "application/json"
	s.serve("GET "+base, page{summary: "List chats; Link leads to the next page", query: pages, status: 200, media: json, shapes: []any{[]ChatInfo{}}}, func(w http.ResponseWriter, r *http.Request) { s.chats(w, r, base) })
	s.serve("POST "+base, page{summary: "Make a chat", header: []string{"Idempotency-Key"}, body: chatIn{}, status: 201, media: json, shapes: []any{ChatInfo{}}}, func(w http.ResponseWriter, r *http.Request) { s.newChat(w, r, provider) })
	s.serve("GET "+base+"/{chat_id}", page{summary: "Read a chat with a page of its messages", query: pages, status: 200, media: json, shapes: []any{chatPage{}}}, s.chatMessages)
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
	out := make([]ChatInfo, 0, len(page.Items))
	for _, t := range page.Items {
		out = append(out, chatOf(t))
	}
	writeJSON(w, http.StatusOK, out)
}

func (s *Server) newChat(w http.ResponseWriter, r *http.Request, provider string) {
	var in chatIn
	if err := decodeBody(r, "a chat", &in); err != nil {
		s.refuse(w, r, err)
		return
	}
	p := thread.Create{Name: in.Title, Settings: event.Settings{Provider: table.Named(in.Provider), Model: in.Model, Profile: thole.Profile(in.ExecutionProfile)}}
	if p.Settings.Provider == "" {
		p.Settings.Provider = provider
	}
	if in.ID != "" {
		p.ID = chat.ThreadID(actorOf(r.Context()).User, in.ID)
	}
	key := r.Header.Get("Idempotency-Key")
	id, err := once(r.Context(), s, "POST /api/chat-history", key, in, func() (thole.ThreadID, error) {
		t, err := s.create(r.Context(), p, in.Source, key)
		return t.ID, err
	})
	var t fold.Thread
	if err == nil {
		t, err = s.existing(r.Context(), id)
	}
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
	list, th, err := s.messages(r.Context(), chat.ThreadID(actorOf(r.Context()).User, r.PathValue("chat_id")), p)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, chatPage{chatOf(th), append([]*chat.Message{}, list.Items...), list.Next})
}
