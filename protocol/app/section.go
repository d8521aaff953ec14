package app

import "encoding/json"

// ThreadSection is a part of a user's list of threads.
type ThreadSection struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Appearance json.RawMessage `json:"appearance" ts:"null"`
}

// ThreadSectionMoveParams moves a thread into a section, or with null out of its own.
type ThreadSectionMoveParams struct {
	ThreadID       string          `json:"threadId"`
	SectionID      json.RawMessage `json:"sectionId,omitempty" ts:"string | null"`
	BeforeThreadID *string         `json:"beforeThreadId,omitempty"`
}

// ThreadSectionListResult is a page of sections.
type ThreadSectionListResult struct {
	Data       []ThreadSection `json:"data"`
	NextCursor *string         `json:"nextCursor"`
}
