package view

import (
	"time"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/event/fold"
)

// SearchHit is one message with the searched text in it.
type SearchHit struct {
	Session   SearchSession `json:"session"`
	RunID     string        `json:"run_id"`
	ItemID    string        `json:"item_id"`
	MessageID string        `json:"message_id" doc:"of the chat message that has it, as GET /sessions/{session_id}/messages names it"`
	Role      string        `json:"role" enum:"user,assistant" doc:"who said it"`
	Seq       uint64        `json:"seq" doc:"orders the hits of one session"`
	RunAt     time.Time     `json:"run_at" doc:"when its run was asked for"`
	Before    string        `json:"before" doc:"text in front of the match; begins with … where more is before"`
	Match     string        `json:"match" doc:"the searched text as it is written there"`
	After     string        `json:"after" doc:"text that follows the match; ends with … where more follows"`
}

// SearchSession is what a session is known by.
type SearchSession struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Provider string `json:"provider"`
	Archived bool   `json:"archived"`
}

// Place is where a search found its text.
type Place struct{ Before, Match, After string }

// OfHit converts a message that was found. steer says that it is a user's message to a
// turn that was running: the chat shows it within the answer.
func OfHit(r fold.ItemRecord, asked time.Time, steer bool, at Place, of SearchSession) SearchHit {
	hit := SearchHit{
		Session: of, RunID: string(r.Turn), ItemID: string(r.Item.ID), MessageID: string(r.Turn), Role: "assistant",
		Seq: r.Seq, RunAt: asked, Before: at.Before, Match: at.Match, After: at.After,
	}
	if r.Item.Kind == event.ItemUserMessage {
		hit.Role = "user"
		if !steer {
			hit.MessageID = string(r.Item.ID)
		}
	}
	return hit
}
