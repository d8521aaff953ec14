package chat

import (
	"crypto/sha256"
	"encoding/json"
	"mime"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/platform/view"
	"github.com/tholehq/thole/internal/provider/table"
	"github.com/tholehq/thole/internal/strictjson"
)

// Request is what a client posts. Fields we do not know are the client's own.
type Request struct {
	_                struct{}                   `additionalProperties:"true"`
	ID               string                     `json:"id,omitempty"`
	ChatID           string                     `json:"chatId,omitempty"`
	Messages         []ClientMessage            `json:"messages,omitempty"`
	Trigger          string                     `json:"trigger,omitempty"`
	MessageID        string                     `json:"messageId,omitempty"`
	Provider         string                     `json:"provider,omitempty"`
	Model            string                     `json:"model,omitempty"`
	Effort           string                     `json:"effort,omitempty"`
	ExecutionProfile string                     `json:"executionProfile,omitempty"`
	ProviderOptions  map[string]json.RawMessage `json:"providerOptions,omitempty"`
	Agent            string                     `json:"agent,omitempty"`
	Approvals        string                     `json:"approvals,omitempty"`
	Existing         bool                       `json:"existing,omitempty" doc:"the chat is known: when there is none of this id, it is not made but refused as not_found"`
	Source           *view.SourceChoice         `json:"source,omitempty" doc:"where the files of a new chat come from; a chat that exists keeps its own"`
}

// ClientMessage is a UIMessage as far as we read it.
type ClientMessage struct {
	_       struct{}        `additionalProperties:"true"`
	ID      string          `json:"id,omitempty"`
	Role    string          `json:"role,omitempty"`
	RawMeta json.RawMessage `json:"metadata,omitempty"`
	Parts   []ClientPart    `json:"parts,omitempty"`
}

// ClientPart is a part as far as we read it.
type ClientPart struct {
	_         struct{} `additionalProperties:"true"`
	Type      string   `json:"type,omitempty"`
	Text      string   `json:"text,omitempty"`
	URL       string   `json:"url,omitempty"`
	Filename  string   `json:"filename,omitempty"`
	MediaType string   `json:"mediaType,omitempty"`
	State     string   `json:"state,omitempty"`
	Approval  *struct {
		ID       string `json:"id,omitempty"`
		Approved *bool  `json:"approved,omitempty"`
		Reason   string `json:"reason,omitempty"`
	} `json:"approval,omitempty"`
}

// Decode reads a request.
func Decode(body []byte) (*Request, error) {
	var r Request
	if err := strictjson.Unmarshal(body, &r); err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "the request is not the JSON of a chat: %w", err)
	}
	if r.ChatID != "" {
		r.ID = r.ChatID
	}
	if r.ID == "" || len(r.ID) > 200 {
		return nil, thole.Errorf(thole.CodeInvalid, "a chat needs an id of at most 200 bytes")
	}
	switch r.Trigger {
	case "", "submit-message", "regenerate-message":
	default:
		return nil, thole.Errorf(thole.CodeInvalid, "unknown trigger %q", r.Trigger)
	}
	switch r.Approvals {
	case "", "post", "stream":
	default:
		return nil, thole.Errorf(thole.CodeInvalid, "approvals is %q, want post or stream", r.Approvals)
	}
	if len(r.Messages) == 0 {
		return nil, thole.Errorf(thole.CodeInvalid, "message is missing")
	}
	return &r, nil
}

// ThreadID is the thread of a chat id: the id itself if it is a UUID, else one
// that this user and this id always give. Two users' chats "a" are two threads.
func ThreadID(user thole.UserID, chat string) thole.ThreadID {
	if thole.ValidUUID(chat) {
		return thole.ThreadID(chat)
	}
	return thole.ThreadID(NamedID("chat", string(user), chat))
}

// NamedID is a UUID (version 8) that the same words always give.
func NamedID(words ...string) string {
	h := sha256.New()
	for _, w := range words {
		h.Write([]byte(w))
		h.Write([]byte{0})
	}
	b := h.Sum(nil)[:16]
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	const hex = "0123456789abcdef"
	s := make([]byte, 0, 36)
	for i, c := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			s = append(s, '-')
		}
		s = append(s, hex[c>>4], hex[c&15])
	}
	return string(s)
}

// Settings are what the request says about how to run; nil for nothing.
func (r *Request) Settings() (*event.Settings, error) {
	s := event.Settings{Provider: table.Named(r.Provider), Model: r.Model, Effort: r.Effort, Profile: thole.Profile(r.ExecutionProfile)}
	if s.Profile == "" && r.Agent != "" {
		if r.Agent != "build" && r.Agent != "plan" {
			return nil, thole.Errorf(thole.CodeInvalid, "agent is %q, want build or plan", r.Agent).WithHint("use executionProfile")
		}
		s.Profile = map[string]thole.Profile{"build": thole.ProfileEdit, "plan": thole.ProfilePlan}[r.Agent]
	}
	s.Options = Options(r.ProviderOptions)
	if s.Provider == "" && s.Model == "" && s.Effort == "" && s.Profile == "" && s.Options == nil {
		return nil, nil
	}
	return &s, nil
}

// Options flattens provider options: texts as they are, the rest as JSON.
func Options(in map[string]json.RawMessage) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]string, len(in))
	for k, v := range in {
		var s string
		if strictjson.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		out[k] = s
	}
	return out
}

// Last is the newest message, the only one that is read: the server has the rest.
func (r *Request) Last() *ClientMessage { return &r.Messages[len(r.Messages)-1] }

// LastUser is the newest message of the user.
func (r *Request) LastUser() *ClientMessage {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "user" {
			return &r.Messages[i]
		}
	}
	return nil
}

// Session is the one that the newest answer of the client is from, "" when it has
// none or says nothing.
func (r *Request) Session() thole.ThreadID {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "assistant" {
			return thole.ThreadID(r.Messages[i].At().SessionID)
		}
	}
	return ""
}

// Again is the message that is to be answered again, in another version if it is
// the user's: "" when the user said something new.
func (r *Request) Again(said *ClientMessage) (string, error) {
	switch {
	case r.MessageID != "":
		return r.MessageID, nil
	case r.Trigger != "regenerate-message":
		return "", nil
	case said.ID == "":
		return "", thole.Errorf(thole.CodeInvalid, "messageId is missing: it says which message is to be answered again")
	}
	return said.ID, nil
}

// seen are the images that models look at; others are files like any.
var seen = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// Input is a user message as a turn takes it.
func (m *ClientMessage) Input() ([]thole.Input, error) {
	var in []thole.Input
	for _, p := range m.Parts {
		switch p.Type {
		case "text":
			if p.Text != "" {
				in = append(in, thole.Input{Type: "text", Text: p.Text})
			}
		case "file":
			if !strings.HasPrefix(p.URL, "data:") {
				return nil, thole.Errorf(thole.CodeUnsupported, "the file %s cannot be sent by its address", thole.FileName(p.Filename)).
					WithHint("send its content as a data: URL")
			}
			if seen[p.MediaType] {
				in = append(in, thole.Input{Type: "image", URL: p.URL})
				continue
			}
			in = append(in, thole.Input{Type: thole.InputFile, Name: thole.FileName(p.Filename), URL: p.URL})
		}
	}
	if len(in) == 0 {
		return nil, thole.Errorf(thole.CodeInvalid, "the message is empty")
	}
	return in, nil
}

// Verdict is an approval that the client posts back.
type Verdict struct {
	Ask    thole.AskID
	Answer event.Answer
}

// Verdicts are the approvals in the message of the assistant that the client
// posted back.
func (m *ClientMessage) Verdicts() []Verdict {
	var out []Verdict
	for _, p := range m.Parts {
		if p.State != "approval-responded" || p.Approval == nil || p.Approval.Approved == nil {
			continue
		}
		v := Verdict{Ask: thole.AskID(p.Approval.ID), Answer: event.Answer{Decision: event.DecisionDeny, Message: p.Approval.Reason}}
		if *p.Approval.Approved {
			v.Answer = event.Answer{Decision: event.DecisionAllow}
		}
		out = append(out, v)
	}
	return out
}

// At is where the client's copy of the message ends.
func (m *ClientMessage) At() Metadata {
	var at Metadata
	if strictjson.Unmarshal(m.RawMeta, &at) != nil {
		return Metadata{}
	}
	return at
}

func inputPart(in thole.Input) Part {
	if in.Type == "image" || in.Type == thole.InputFile {
		p := Part{"type": "file", "url": in.URL, "mediaType": "image/png"}
		if in.Type == thole.InputFile {
			p["mediaType"], p["filename"] = "application/octet-stream", in.Name
		}
		if rest, ok := strings.CutPrefix(in.URL, "data:"); ok {
			head, _, _ := strings.Cut(rest, ",")
			if t, _, err := mime.ParseMediaType(strings.TrimSuffix(head, ";base64")); err == nil && t != "" {
				p["mediaType"] = t
			}
		}
		return p
	}
	return Part{"type": "text", "text": in.Text}
}
