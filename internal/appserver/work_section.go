package appserver

import (
	"context"
	"encoding/json"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/serial"
	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// pinned is the section that every user of Codex has: here it has the threads that are
// pinned, on the page too. There is no other.
var pinned = app.ThreadSection{ID: "01984de2-8f74-7c91-a3b2-5c5e937cf318", Name: "Pinned"}

// registerSections serves sections of the list of threads.
func (s *Server) registerSections() {
	on(s, "threadSection/list", func(_ context.Context, _ *conn, p *app.ListParams) (answer, error) {
		data, next, err := paged([]app.ThreadSection{pinned}, *p)
		return result(app.ThreadSectionListResult{Data: data, NextCursor: next}, err)
	})
	inThread(on(s, "thread/section/move", s.sectionMove), serial.Exclusive, func(p *app.ThreadSectionMoveParams) string { return p.ThreadID })
}

func (s *Server) sectionMove(ctx context.Context, c *conn, p *app.ThreadSectionMoveParams) (answer, error) {
	id, err := threadID(p.ThreadID)
	if err != nil {
		return answer{}, err
	}
	if len(p.SectionID) == 0 {
		return answer{}, invalid("missing field `sectionId`")
	}
	pin, err := inSection(p.SectionID)
	switch {
	case err != nil:
	case *pin && sectionOf(p.SectionID) != pinned.ID:
		err = thole.Errorf(thole.CodeNotFound, "section not found: %s", sectionOf(p.SectionID)).WithHint("threadSection/list has the one that there is")
	case str(p.BeforeThreadID) != "":
		err = thole.Errorf(thole.CodeUnsupported, "thread/section/move.beforeThreadId is not supported: pinned threads are in the order of their time").WithHint("leave beforeThreadId out")
	default:
		_, err = s.cfg.Threads.Update(ctx, c.who(), id, thread.Update{Pinned: pin})
	}
	return result(app.Empty{}, err)
}

// inSection reads a filter by section: nil for all threads, true for those in one, false
// for those in none.
func inSection(raw json.RawMessage) (*bool, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var id *string
	if err := strictjson.Unmarshal(raw, &id); err != nil {
		return nil, invalid("sectionId is not a string")
	}
	return new(id != nil), nil
}

func sectionOf(raw json.RawMessage) (id string) {
	_ = strictjson.Unmarshal(raw, &id) // inSection did
	return id
}

// nowhere reports whether the threads of a section are wanted that is not there.
func (s *Server) nowhere(p *app.ThreadListParams) bool {
	id := sectionOf(p.SectionID)
	return id != "" && id != pinned.ID
}
