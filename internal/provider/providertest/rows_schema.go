package providertest

import (
	"encoding/json"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

const answerSchema = `{"type":"object","properties":{"answer":{"type":"string"},"sure":{"type":"boolean"}},"required":["answer","sure"],"additionalProperties":false}`

func schemaRows() []Row {
	return []Row{
		alone("answer by a schema", func(b *Bench) {
			s := b.Open()
			b.outcome(b.Play(s, "sim: say an ordinary answer"), thole.OutcomeCompleted)
			r := b.StartTurn(s, provider.Turn{Input: thole.Text(`sim: run echo looked ;; give {"answer":"forty-two","sure":true}`), Schema: json.RawMessage(answerSchema)}).allowAll()
			b.outcome(r, thole.OutcomeCompleted)
			said := r.Items(event.ItemMessage)
			if len(said) == 0 {
				b.Fatalf("no message; events:\n%s", r)
			}
			var got struct {
				Answer string
				Sure   bool
			}
			last := said[len(said)-1].Text
			if err := json.Unmarshal([]byte(last), &got); err != nil || got.Answer != "forty-two" || !got.Sure {
				b.Errorf("the last message is %q: %v", last, err)
			}
			if tools := r.Items(event.ItemTool); len(tools) > 0 {
				b.Errorf("the answer is shown as a call too: %+v", tools)
			}
			if n := len(r.Items(event.ItemCommand)); n != 1 {
				b.Errorf("%d commands; events:\n%s", n, r)
			}
			if !b.Harness.SaysJSON {
				r = b.StartTurn(s, provider.Turn{Input: thole.Text("sim: say in words only"), Schema: json.RawMessage(answerSchema)}).Wait()
				if end := r[len(r)-1]; end.Outcome != thole.OutcomeFailed {
					b.Errorf("an answer in words: %+v; events:\n%s", end, r)
				}
			}
			if r = b.Play(s, "sim: say ordinary again, after %first%"); !strings.HasPrefix(r.Text(), "ordinary again") {
				b.Errorf("the next turn says %q; events:\n%s", r.Text(), r)
			}
		}),
	}
}
