package mcp

import (
	"context"
	"encoding/json"

	"github.com/tholehq/thole/event"
)

// goalUpdate takes the agent's word about the goal of its thread. It can end the work at it,
// never begin it.
func (s *Server) goalUpdate(ctx context.Context, a asker, raw json.RawMessage) (string, error) {
	p, err := read[struct {
		Status event.GoalStatus `json:"status"`
		Note   string           `json:"note"`
	}](raw)
	if err != nil {
		return "", err
	}
	g, err := s.cfg.Threads.ReportGoal(ctx, a.actor(), a.Thread, a.Turn, p.Status, p.Note)
	if err != nil {
		return "", err
	}
	return "The goal is " + string(g.Status) + ". End your turn now.", nil
}
