package gateway

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/testkit/upstream"
)

// TestFaultsPassUnchanged compares what a client sees of each fault through the gateway
// with what it sees directly.
func TestFaultsPassUnchanged(t *testing.T) {
	direct := &http.Client{Transport: &http.Transport{DisableCompression: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(direct.CloseIdleConnections)
	zero, full := thole.Usage{Model: "m-1"}, upstream.Usage
	full.Model = "m-1"
	faults := []struct {
		fault upstream.Fault
		known bool
		usage thole.Usage
	}{
		{upstream.None, true, full},
		{upstream.CutHead, false, zero},
		{upstream.CutInside, false, zero},
		{upstream.Giant, true, full},
		{upstream.WrongType, true, full},
		{upstream.ManyHeaders, true, full},
		{upstream.Status403, true, zero},
		{upstream.Status429, true, zero},
		{upstream.Status500, true, zero},
		{upstream.Status529, true, zero},
		{upstream.FailedEvent, false, zero},
		{upstream.WithoutUsage, false, zero},
	}
	for _, d := range dialects {
		for _, f := range faults {
			t.Run(string(d)+" "+string(f.fault), func(t *testing.T) {
				s := upstream.Start(t, f.fault)
				r := newRig(t, d, s)
				want := ask(direct, http.MethodPost, s.URL()+strings.TrimPrefix(paths[d], "/r/v1"), bodies[d])
				got := r.post(t)
				same(t, got, want)
				results := r.ledger.results(t)
				if len(results) != 1 {
					t.Fatalf("%d results", len(results))
				}
				res := results[0]
				if res.Known != f.known || res.Status != want.status || res.Upstream != "up0" {
					t.Errorf("%+v", res)
				}
				if f.known && res.Usage != f.usage {
					t.Errorf("usage %+v", res.Usage)
				}
				if !f.known && (res.Usage.Input+res.Usage.CacheRead == 0 || res.Usage.Output > r.ledger.begun[0].MaxOutput) {
					t.Errorf("usage %+v is no upper bound", res.Usage)
				}
				if cut := want.err != ""; cut != (res.Error != "") {
					t.Errorf("error %q", res.Error)
				}
			})
		}
	}
}

func same(t *testing.T, got, want answer) {
	t.Helper()
	if got.status != want.status || got.body != want.body || got.err != want.err {
		t.Errorf("through the gateway %d %q %s; directly %d %q %s", got.status, clip(got.body), got.err, want.status, clip(want.body), want.err)
	}
	for name := range got.header {
		if name != "Date" && name != "Content-Length" && !down.passes(name) {
			t.Errorf("header %s passed", name)
		}
	}
	for name, v := range want.header {
		if down.passes(name) && got.header.Get(name) != v[0] {
			t.Errorf("header %s is %q, directly %q", name, got.header.Get(name), v[0])
		}
	}
}

func clip(s string) string { return s[:min(len(s), 300)] }

// TestPlainAnswers: answers in one piece pass unchanged and are counted.
func TestPlainAnswers(t *testing.T) {
	for _, d := range dialects {
		s := upstream.Start(t, upstream.None)
		r := newRig(t, d, s)
		body := strings.Replace(bodies[d], `"stream":true`, `"stream":false`, 1)
		got := ask(r.client(t), http.MethodPost, "http://gw"+paths[d], body)
		want := ask(http.DefaultClient, http.MethodPost, s.URL()+strings.TrimPrefix(paths[d], "/r/v1"), body)
		same(t, got, want)
		s.Set(upstream.ShortLength)
		if got := ask(r.client(t), http.MethodPost, "http://gw"+paths[d], body); got.err != "cut" {
			t.Errorf("%s: a cut answer looks whole: %+v", d, got)
		}
		results := r.ledger.results(t)
		full := upstream.Usage
		full.Model = "m-1"
		if !results[0].Known || results[0].Usage != full || results[1].Known {
			t.Errorf("%s: %+v", d, results)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestNoAnswer: what is no answer becomes one by the gateway, which clients retry.
func TestNoAnswer(t *testing.T) {
	for _, d := range dialects {
		for fault, want := range map[upstream.Fault]struct {
			status int
			known  bool
		}{
			upstream.CutBefore:   {502, false},
			upstream.HugeHeaders: {502, false},
			upstream.Hang:        {504, false},
			upstream.Redirect:    {502, true},
		} {
			s := upstream.Start(t, fault)
			r := newRig(t, d, s)
			if fault == upstream.Hang {
				r.route.Upstreams[0].FirstByte = 20 * time.Millisecond
			}
			got := r.post(t)
			if got.status != want.status || got.header.Get("X-Should-Retry") != "true" || !shaped(d, got.body) {
				t.Errorf("%s %s: %+v", d, fault, got)
			}
			if res := r.ledger.results(t); len(res) != 1 || res[0].Known != want.known || res[0].Status != want.status || res[0].Error == "" {
				t.Errorf("%s %s: %+v", d, fault, res)
			}
		}
		r := newRig(t, d)
		r.route.Upstreams = []Upstream{at(t, "closed", "http://127.0.0.1:1/v1")}
		if got := r.post(t); got.status != 502 || strings.Contains(got.body, "127.0.0.1") {
			t.Errorf("%+v", got)
		}
		if res := r.ledger.results(t); len(res) != 1 || !res[0].Known || res[0].Usage.Input != 0 {
			t.Errorf("a call that was never sent costs %+v", res)
		}
	}
}

// shaped reports whether a body is an error of the dialect.
func shaped(d Dialect, body string) bool {
	if d == Anthropic {
		return strings.HasPrefix(body, `{"error":{"message":`) && strings.HasSuffix(body, `"type":"error"}`)
	}
	return strings.HasPrefix(body, `{"error":{"code":"`) && strings.Contains(body, `"param":null`)
}

func TestFailover(t *testing.T) {
	for _, d := range dialects {
		for _, fault := range []upstream.Fault{upstream.Status429, upstream.Status500, upstream.Status529, upstream.CutBefore, upstream.Hang} {
			bad, good := upstream.Start(t, fault), upstream.Start(t, upstream.None)
			r := newRig(t, d, bad, good)
			r.route.Upstreams[0].FirstByte = 20 * time.Millisecond
			if fault != upstream.Hang {
				r.route.Upstreams[0].FirstByte = 0
			}
			if got := r.post(t); got.status != 200 || got.err != "" {
				t.Errorf("%s %s: %+v", d, fault, got)
			}
			res := r.ledger.results(t)
			if len(res) != 1 || res[0].Upstream != "up1" || len(bad.Requests()) != 1 || len(good.Requests()) != 1 {
				t.Errorf("%s %s: %+v", d, fault, res)
			}
			if lost := fault == upstream.CutBefore || fault == upstream.Hang; res[0].Known == lost {
				t.Errorf("%s %s: the upstream that did not answer may have counted: %+v", d, fault, res)
			}
		}
		// Nothing is sent again after a byte was passed on, nor after a refusal that
		// another upstream would not change.
		for _, fault := range []upstream.Fault{upstream.CutInside, upstream.CutHead, upstream.Status403, upstream.Status401} {
			bad, good := upstream.Start(t, fault), upstream.Start(t, upstream.None)
			r := newRig(t, d, bad, good)
			r.post(t)
			if n := len(good.Requests()); n != 0 {
				t.Errorf("%s %s: sent to another upstream", d, fault)
			}
		}
		// The last answer is passed on as it is.
		r := newRig(t, d, upstream.Start(t, upstream.Status500), upstream.Start(t, upstream.Status529))
		if got := r.post(t); got.status != 529 || !strings.Contains(got.body, "refused with 529") {
			t.Errorf("%+v", got)
		}
	}
}

func TestRefusedCredentialIsRenewedOnce(t *testing.T) {
	for _, d := range dialects {
		s := upstream.Start(t, upstream.Status401X1)
		r := newRig(t, d, s)
		if got := r.post(t); got.status != 200 || len(s.Requests()) != 2 || len(r.denied) != 0 {
			t.Errorf("%+v", got)
		}
		s.Set(upstream.Status401)
		got := r.post(t)
		if got.status != 401 || !shaped(d, got.body) || strings.Contains(got.body, "refused with") || len(s.Requests()) != 4 || len(r.denied) != 1 {
			t.Errorf("%+v, %v", got, r.denied)
		}
		if res := r.ledger.results(t); len(res) != 2 || !res[1].Known || res[1].Usage.Input != 0 {
			t.Errorf("%+v", res)
		}
	}
}

func TestNoCredential(t *testing.T) {
	s := upstream.Start(t, upstream.None)
	r := newRig(t, Anthropic, s, s)
	r.route.Upstreams[0].Sign = func(context.Context, http.Header, bool) error {
		return thole.Errorf(thole.CodeUnavailable, "vault is locked").WithHint("unlock it")
	}
	if got := r.post(t); got.status != 200 {
		t.Errorf("%+v", got)
	}
	r.route.Upstreams = r.route.Upstreams[:1]
	if got := r.post(t); got.status != 503 || !strings.Contains(got.body, "vault is locked (unlock it)") {
		t.Errorf("%+v", got)
	}
	if len(s.Requests()) != 1 {
		t.Error("sent without a credential")
	}
}

func TestSpentBudget(t *testing.T) {
	for _, d := range dialects {
		s := upstream.Start(t, upstream.None)
		r := newRig(t, d, s)
		r.ledger.refuse = thole.Errorf(thole.CodeBudgetExceeded, "budget of project p is spent: $5.00 a day, until 00:00 UTC")
		got := r.post(t)
		if got.status != 400 || got.header.Get("X-Should-Retry") != "false" || !shaped(d, got.body) || !strings.Contains(got.body, "until 00:00 UTC") {
			t.Errorf("%+v", got)
		}
		if len(s.Requests()) != 0 {
			t.Errorf("%d requests", len(s.Requests()))
		}
		r.ledger.refuse = context.DeadlineExceeded
		if got := r.post(t); got.status != 503 || len(s.Requests()) != 0 {
			t.Errorf("a ledger that fails lets a call pass: %+v", got)
		}
	}
}
