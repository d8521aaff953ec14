package view

import "time"

// Files says how far a session's files are saved.
type Files struct {
	State      string    `json:"state" enum:"none,saving,saved,unsaved" doc:"none: no executor has any to save"`
	SavedAt    time.Time `json:"saved_at,omitzero" doc:"of the last sync that succeeded"`
	TriedAt    time.Time `json:"tried_at,omitzero" doc:"of the last sync that began"`
	Reason     string    `json:"reason,omitempty" doc:"why that one began"`
	Error      string    `json:"error,omitempty" doc:"why it failed"`
	WaitsFor   string    `json:"waits_for,omitempty" doc:"what holds up all syncs, or all that is recorded: a full disk"`
	ExecutorID string    `json:"executor_id,omitempty"`
}

// FoundFile is a file or directory of a session's workspace.
type FoundFile struct {
	Path string `json:"path" doc:"below the workspace"`
	Kind string `json:"kind" enum:"file,directory"`
}
