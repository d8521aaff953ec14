package app

import "encoding/json"

// GitInfo is where in a repository a client says that a thread works.
type GitInfo struct {
	Sha       *string `json:"sha"`
	Branch    *string `json:"branch"`
	OriginURL *string `json:"originUrl"`
}

// ThreadMetadataParams changes what clients keep with a thread.
type ThreadMetadataParams struct {
	ThreadID        string         `json:"threadId"`
	GitInfo         *GitInfoUpdate `json:"gitInfo,omitempty"`
	ProjectID       *string        `json:"projectId,omitempty"`
	DaybreakEnabled *bool          `json:"daybreakEnabled,omitempty"`
}

// GitInfoUpdate leaves a field that is absent as it is, and clears one that is null.
type GitInfoUpdate struct {
	Sha       json.RawMessage `json:"sha,omitempty" ts:"string | null"`
	Branch    json.RawMessage `json:"branch,omitempty" ts:"string | null"`
	OriginURL json.RawMessage `json:"originUrl,omitempty" ts:"string | null"`
}
