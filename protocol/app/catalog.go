package app

import "encoding/json"

// Model is one model of one provider. Models of other providers than codex have
// ids of the form provider/model.
type Model struct {
	ID                        string         `json:"id"`
	Model                     string         `json:"model"`
	Upgrade                   *string        `json:"upgrade"`
	DisplayName               string         `json:"displayName"`
	Description               string         `json:"description"`
	Hidden                    bool           `json:"hidden"`
	SupportedReasoningEfforts []EffortOption `json:"supportedReasoningEfforts"`
	DefaultReasoningEffort    string         `json:"defaultReasoningEffort"`
	InputModalities           []string       `json:"inputModalities"`
	SupportsPersonality       bool           `json:"supportsPersonality"`
	AdditionalSpeedTiers      []string       `json:"additionalSpeedTiers"`
	ServiceTiers              []string       `json:"serviceTiers"`
	DefaultServiceTier        *string        `json:"defaultServiceTier"`
	IsDefault                 bool           `json:"isDefault"`
}

// EffortOption is one reasoning effort.
type EffortOption struct {
	ReasoningEffort string `json:"reasoningEffort"`
	Description     string `json:"description"`
}

// ModelListParams pages models.
type ModelListParams struct {
	Cursor        *string `json:"cursor,omitempty"`
	Limit         *int    `json:"limit,omitempty"`
	IncludeHidden *bool   `json:"includeHidden,omitempty"`
}

// ModelListResult is every provider's models.
type ModelListResult struct {
	Data       []Model `json:"data"`
	NextCursor *string `json:"nextCursor"`
}

// ModelProviderCapabilities is what the model's service does for the agent of new threads.
type ModelProviderCapabilities struct {
	ImageGeneration bool `json:"imageGeneration"`
	WebSearch       bool `json:"webSearch"`
}

// ProfileSummary is one permission profile.
type ProfileSummary struct {
	ID          string  `json:"id"`
	Description *string `json:"description"`
	Allowed     bool    `json:"allowed"`
}

// ProfileListResult is every permission profile.
type ProfileListResult struct {
	Data       []ProfileSummary `json:"data"`
	NextCursor *string          `json:"nextCursor"`
}

// CwdsParams is the params of plugin/list.
type CwdsParams struct {
	Cwds []string `json:"cwds,omitempty"`
}

// CollaborationModeInfo is one mode that a turn can run in.
type CollaborationModeInfo struct {
	Name   string  `json:"name"`
	Mode   string  `json:"mode"`
	Model  *string `json:"model"`
	Effort *string `json:"reasoning_effort"`
}

// CollaborationModeList is every mode.
type CollaborationModeList struct {
	Data []CollaborationModeInfo `json:"data"`
}

// ConfigReadParams names the directory whose configuration is wanted.
type ConfigReadParams struct {
	Cwd           *string `json:"cwd,omitempty"`
	IncludeLayers bool    `json:"includeLayers,omitempty"`
}

// ConfigReadResult is the configuration that new threads start with.
type ConfigReadResult struct {
	Config Config `json:"config"`
	// Origins say of a setting that was chosen which layer has it.
	Origins map[string]ConfigOrigin `json:"origins"`
	Layers  []ConfigLayer           `json:"layers,omitempty"`
}

// ConfigOrigin is a layer of settings in one of its versions.
type ConfigOrigin struct {
	Name    ConfigSource `json:"name"`
	Version string       `json:"version"`
}

// ConfigLayer is a layer with what it sets.
type ConfigLayer struct {
	ConfigOrigin
	Config         map[string]string `json:"config"`
	DisabledReason *string           `json:"disabledReason"`
}

// ConfigSource is where a layer is kept. Ours is always of type user.
type ConfigSource struct {
	Type    string  `json:"type"`
	File    string  `json:"file"`
	Profile *string `json:"profile"`
}

// Config is the part of a Codex configuration that means something here.
type Config struct {
	Model          *string `json:"model"`
	ModelProvider  *string `json:"model_provider"`
	ApprovalPolicy *string `json:"approval_policy"`
	SandboxMode    *string `json:"sandbox_mode"`
	Effort         *string `json:"model_reasoning_effort"`
	// Projects has the directory that a request names.
	Projects map[string]ProjectTrust `json:"projects,omitempty"`
}

// ProjectTrust says that a client may work in a directory without asking.
type ProjectTrust struct {
	TrustLevel string `json:"trust_level"`
}

// ConfigEdit sets one setting; null removes it.
type ConfigEdit struct {
	KeyPath string          `json:"keyPath"`
	Value   json.RawMessage `json:"value,omitempty"`
	// MergeStrategy is replace or upsert; for single values they are the same.
	MergeStrategy   string  `json:"mergeStrategy,omitempty"`
	ExpectedVersion *string `json:"expectedVersion,omitempty"`
	// FilePath is that of config/read's layer, or is left out.
	FilePath *string `json:"filePath,omitempty"`
}

// ConfigBatchWriteParams sets several settings, or none of them.
type ConfigBatchWriteParams struct {
	Edits           []ConfigEdit `json:"edits"`
	ExpectedVersion *string      `json:"expectedVersion,omitempty"`
	FilePath        *string      `json:"filePath,omitempty"`
}

// ConfigWriteResult says that the settings were kept, and where.
type ConfigWriteResult struct {
	Status     string          `json:"status"`
	Version    string          `json:"version"`
	FilePath   string          `json:"filePath"`
	Overridden json.RawMessage `json:"overriddenMetadata"`
}
