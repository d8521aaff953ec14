package gateway

import (
	"testing"
	"time"

	"github.com/tholehq/thole"
)

func TestPicker(t *testing.T) {
	for text, want := range map[string][3]string{
		`{"type":"a","model":"b","usage":{"x":{"y":[1,2]},"z":"}"}}`:             {`"a"`, `"b"`, `{"x":{"y":[1,2]},"z":"}"}`},
		` { "usage" : null , "response" : {"usage" : {"a":1} , "model":"b"} } `:  {``, `"b"`, ` {"a":1} `},
		`{"message":{"usage":{"a":1},"content":[{"usage":{"a":2}}]},"type":"m"}`: {`"m"`, ``, `{"a":1}`},
		`{"input":{"usage":{"a":1}},"x":[{"usage":1}],"usage":{"a":2}}`:          {``, ``, `{"a":2}`},
		`{"text":"\"usage\":{\"a\":1}","type":"t"}`:                              {`"t"`, ``, ``},
		`{"text":"usage","a":["usage",{"a":1}],"type":"\\"}`:                     {`"\\"`, ``, ``},
		`{"response":[{"usage":{"a":1}}],"message":"usage"}`:                     {``, ``, ``},
		`[{"usage":1}]`:          {``, ``, ``},
		`}}}{"usage":{"a":1}}`:   {``, ``, ``},
		`"usage":{"a":1}`:        {``, ``, ``},
		`{"us\u0061ge":{"a":1}}`: {``, ``, ``},
	} {
		for step := 1; step <= len(text); step++ {
			var p picker
			p.read([]byte(`{"usage":{"old":1},"type":"old"}`))
			p.reset()
			for i := 0; i < len(text); i += step {
				p.read([]byte(text[i:min(i+step, len(text))]))
			}
			if got := [3]string{string(p.kind), string(p.model), string(p.usage)}; got != want {
				t.Errorf("%s by %d: %q", text, step, got)
				break
			}
		}
	}
}

func TestUsageOfServices(t *testing.T) {
	for text, want := range map[string]thole.Usage{
		`{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,"completion_tokens_details":{"reasoning_tokens":4}}`: {Input: 10, Output: 3, Reasoning: 4},
		`{"prompt_tokens":10,"completion_tokens":3,"total_tokens":17,"completion_tokens_details":{"reasoning_tokens":4}}`: {Input: 10, Output: 3, Reasoning: 4},
		`{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":null}`:                                         {Input: 10, Output: 3},
		`{"prompt_tokens":-10,"completion_tokens":9223372036854775807}`:                                                   {Output: 1<<31 - 1},
	} {
		m := meter{dialect: Chat}
		m.read([]byte(`{"usage":` + text + `}`))
		m.end(true)
		if !m.final || m.usage != want {
			t.Errorf("%s: %+v", text, m.usage)
		}
	}
	for _, text := range []string{`1`, `[]`, `{}`, `{"prompt_tokens":1.5}`, `{"prompt_tokens":"1"}`} {
		m := meter{dialect: Chat}
		m.read([]byte(`{"usage":` + text + `}`))
		if m.end(true); m.final {
			t.Errorf("%s: %+v", text, m.usage)
		}
	}
}

// TestIterations: a context that was shortened within a call is counted.
func TestIterations(t *testing.T) {
	m := meter{dialect: Anthropic}
	m.read([]byte("data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":30,\"output_tokens\":1}}}\n\n" +
		"data: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":30,\"output_tokens\":5,\"iterations\":[" +
		"{\"type\":\"compaction\",\"input_tokens\":1000,\"output_tokens\":70},{\"type\":\"message\",\"input_tokens\":30,\"output_tokens\":5,\"cache_read_input_tokens\":2}]}}\n\n"))
	m.end(true)
	if want := (thole.Usage{Input: 1030, Output: 75, CacheRead: 2}); !m.final || m.usage != want {
		t.Errorf("%+v", m.usage)
	}
}

// TestUnknownUsage: what a client announced does not make a cut answer cheap.
func TestUnknownUsage(t *testing.T) {
	for _, c := range []struct {
		limit, n, received int64
		want               int64
	}{
		{100, 1, 0, 100},        // generated and not sent
		{1 << 20, 1, 0, 4000},   // as fast as a model is
		{1 << 20, 8, 0, 32_000}, // eight of them
		{1, 1, 2000, 1},         // a limit that was kept to
		{1, 1, 1 << 20, 1<<19 + 4000},
		{1 << 62, 1, 1 << 20, 1<<19 + 4000},
	} {
		got := unknownUsage(Call{InputEstimate: 5, MaxOutput: c.limit}, c.n, thole.Usage{}, c.received, 10*time.Second)
		if got.Input != 5 || got.Output != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// FuzzMeter: usage does not depend on how an answer is cut into pieces, and no answer
// makes the meter keep more than its bound.
func FuzzMeter(f *testing.F) {
	for _, s := range []string{
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n",
		"data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":3}}\r\n\r\n",
		"data:{\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}}\n\n",
		"data: {\"usage\":{\"prompt_tokens\":3,\ndata: \"completion_tokens\":4}}\n\ndata: [DONE]\n\n",
		`{"usage":{"prompt_tokens":3,"completion_tokens":4},"model":"m"}`,
	} {
		f.Add([]byte(s), uint8(3), uint8(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, step, which uint8) {
		d := dialects[int(which)%len(dialects)]
		one, many := meter{dialect: d}, meter{dialect: d}
		one.read(data)
		for i, n := 0, int(step)+1; i < len(data); i += n {
			many.read(data[i:min(i+n, len(data))])
		}
		one.end(true)
		many.end(true)
		if one.usage != many.usage || one.final != many.final {
			t.Fatalf("%+v %v and %+v %v", one.usage, one.final, many.usage, many.final)
		}
		if u := one.usage; min(u.Input, u.Output, u.Reasoning, u.CacheRead, u.CacheWrite) < 0 {
			t.Fatalf("%+v", u)
		}
		if p := one.pick; len(p.kind)+len(p.model)+len(p.usage) > 3*maxPicked || len(p.name) > 64 || len(one.start) > 64 {
			t.Fatal("kept too much")
		}
	})
}
