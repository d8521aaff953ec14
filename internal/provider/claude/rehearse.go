package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/strictjson"
)

// rehearse tries whether an untested version keeps a parked question: one process
// asks it and parks it, another is given the answer and must give it to the model as
// the question's own result. The model is no model but a prompter of thole's on
// loopback, so nothing leaves the machine and no login is used.
func (p *Provider) rehearse(ctx context.Context, binary, home string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var told prompter
	web := &http.Server{Handler: &told}
	go func() { _ = web.Serve(ln) }()
	defer web.Close()
	cfg := provider.SessionConfig{Dir: home, Data: filepath.Join(home, "data"), Auth: filepath.Join(home, "auth"), Env: map[string]string{
		"ANTHROPIC_BASE_URL": "http://" + ln.Addr().String(), "ANTHROPIC_API_KEY": "rehearsal", "ENABLE_TOOL_SEARCH": "false",
	}}
	play := func(turn provider.Turn, see func(*session, event.Event)) (ended provider.Ended, err error) {
		s := newSession(p.cfg, binary, cfg, stance{mode: modeDefault}, func(context.Context) bool { return true })
		defer s.Close()
		if _, err := s.Alive(ctx); err != nil {
			return ended, err
		}
		cfg.Resume = s.NativeID()
		err = s.Run(ctx, turn, func(e event.Event) {
			if e.Kind == event.TurnEnded {
				ended = provider.EndedOf(e)
			}
			see(s, e)
		})
		return ended, err
	}
	var asked event.Ask
	ended, err := play(provider.Turn{ID: "rehearsal-1", Input: thole.Text("ask")}, func(s *session, e event.Event) {
		if e.Ask != nil {
			asked = *e.Ask
			go func() { _ = s.Defer(ctx, e.Ask.ID) }() // the turn's end shows whether it worked
		}
	})
	switch {
	case err != nil:
		return err
	case len(asked.Questions) == 0 || ended.Deferred != asked.ID:
		return errors.New("it parked no question")
	}
	answer := event.Answer{Decision: event.DecisionAllow, Answers: map[string][]string{asked.Questions[0].ID: {rehearsedAnswer}}}
	_, err = play(provider.Turn{ID: "rehearsal-2", Reply: &provider.Reply{Ask: asked, Answer: answer}}, func(*session, event.Event) {})
	if err == nil && !told.answered.Load() {
		err = errors.New("it lost the answer to a parked question")
	}
	return err
}

const (
	rehearsedTool   = "toolu_rehearsal"
	rehearsedAnswer = "the second one"
)

// prompter plays the model of a rehearsal: it asks a question and listens for the
// answer.
type prompter struct{ answered atomic.Bool }

func (p *prompter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	if err != nil || r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	var q struct {
		Stream bool `json:"stream"`
		Tools  []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Messages []apiMessage `json:"messages"`
	}
	_ = strictjson.Unmarshal(body, &q)
	asks := false
	for _, t := range q.Tools {
		asks = asks || t.Name == askTool
	}
	for _, m := range q.Messages {
		for _, b := range m.blocks() {
			if b.Type == "tool_result" && b.ToolUseID == rehearsedTool {
				asks = false
				if strings.Contains(string(b.Content), rehearsedAnswer) {
					p.answered.Store(true)
				}
			}
		}
	}
	block, input, reason := `{"type":"text","text":""}`, `{"type":"text_delta","text":"Thanks."}`, "end_turn"
	if asks {
		question, _ := json.Marshal(`{"questions":[{"question":"Which one?","header":"One","multiSelect":false,"options":[` +
			`{"label":"the first one","description":"1"},{"label":"the second one","description":"2"}]}]}`)
		block = `{"type":"tool_use","id":"` + rehearsedTool + `","name":"` + askTool + `","input":{}}`
		input, reason = `{"type":"input_json_delta","partial_json":`+string(question)+`}`, "tool_use"
	}
	const usage = `"usage":{"input_tokens":1,"output_tokens":1}`
	const message = `{"id":"msg_rehearsal","type":"message","role":"assistant","model":"rehearsal","stop_reason":%s,"stop_sequence":null,"content":[%s],` + usage + `}`
	if !q.Stream { // a title, a count of tokens, a check of the key
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, message, `"end_turn"`, `{"type":"text","text":"Thanks."}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range [][2]string{
		{"message_start", `"message":` + fmt.Sprintf(message, "null", "")},
		{"content_block_start", `"index":0,"content_block":` + block},
		{"content_block_delta", `"index":0,"delta":` + input},
		{"content_block_stop", `"index":0`},
		{"message_delta", `"delta":{"stop_reason":"` + reason + `","stop_sequence":null},` + usage},
		{"message_stop", ""},
	} {
		sep := ","
		if e[1] == "" {
			sep = ""
		}
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s%s}\n\n", e[0], e[0], sep, e[1])
	}
}
