package opencode

import (
	"encoding/json"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
)

// The texts are the server's own, or a service's words as the server repeats them.
func TestRetryIsJudgedByWhatIsTold(t *testing.T) {
	for _, c := range []struct {
		status string
		wait   time.Duration
		want   thole.ErrorCode
	}{
		{`{"message":"Cannot connect to API: The socket connection was closed unexpectedly."}`, 2 * time.Second, thole.ErrNetwork},
		{`{"message":"Connection reset by server"}`, 2 * time.Second, thole.ErrNetwork},
		{`{"message":"Provider is overloaded"}`, 2 * time.Second, thole.ErrOverloaded},
		{`{"message":"Too Many Requests"}`, 2 * time.Second, thole.ErrRateLimit},
		{`{"message":"boom"}`, 2 * time.Second, thole.ErrOverloaded},
		{`{"message":"come back tomorrow"}`, 20 * time.Hour, thole.ErrRateLimit},
		{`{"message":"Subscribe","action":{"reason":"free_tier_limit"}}`, 2 * time.Second, thole.ErrRateLimit},
		{`{"message":"Go limit reached","action":{"reason":"account_rate_limit"}}`, time.Hour, thole.ErrRateLimit},
	} {
		var s status
		if err := json.Unmarshal([]byte(c.status), &s); err != nil {
			t.Fatal(err)
		}
		if f := retryOf(&s, c.wait); f.Code != c.want || !f.Retrying || f.Hint == "" {
			t.Errorf("%s in %v: %+v, want %s", c.status, c.wait, f, c.want)
		}
	}
}

// What the server did not expect is judged by its own words, without its stack.
func TestUnexpectedErrors(t *testing.T) {
	for text, want := range map[string]thole.TurnError{
		"ProviderModelNotFoundError: Model not found: nope/x.\n    at <anonymous> (/$bunfs/root/chunk-a.js:439:50300)\n    at f (b.js:1:529)": {Code: thole.ErrBadRequest, Message: "Model not found: nope/x."},
		"the service is overloaded": {Code: thole.ErrOverloaded, Message: "the service is overloaded"},
		"could not do it: why not":  {Code: thole.ErrBadRequest, Message: "could not do it: why not"},
	} {
		var e nativeError
		e.Name, e.Data.Message = "UnknownError", text
		if f, ok := failureOf(&e); !ok || f.Code != want.Code || f.Message != want.Message {
			t.Errorf("%q: %v %+v", text, ok, f)
		}
	}
}

func TestSessionIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"ses_e229071bcffeJfrFyw4WRhzD67": true, "ses_1": true, "ses_": false, "": false,
		"00000000-0000-7000-8000-00000000dead": false, "ses_a/../../agent": false, "ses_a?b": false,
	} {
		if isSessionID(id) != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
}
