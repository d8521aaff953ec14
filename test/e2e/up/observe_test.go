package up

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/tholehq/thole/internal/testkit/poll"
	"github.com/tholehq/thole/test/e2e/home"
	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector keeps the names of the spans of each trace.
type collector struct {
	mu    sync.Mutex
	spans map[string][]string
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	var got collect.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(b, &got) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, res := range got.ResourceSpans {
		for _, scope := range res.ScopeSpans {
			for _, s := range scope.Spans {
				id := hex.EncodeToString(s.TraceId)
				c.spans[id] = append(c.spans[id], s.Name)
			}
		}
	}
}

// has reports whether a trace has all these spans.
func (c *collector) has(trace string, names ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(c.spans[trace], n) })
}

func (c *collector) all() map[string][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.spans)
}

// measured reads every sample at /metrics: of a histogram how many there were.
func (r *running) measured() map[string]float64 {
	r.t.Helper()
	if r.token == "" {
		r.token = token(r.t, r.home, "--scope", "read")
	}
	code, body := r.get("/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil || code != http.StatusOK {
		r.t.Fatalf("/metrics: %d %v", code, err)
	}
	out := map[string]float64{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			key := name
			for _, l := range m.GetLabel() {
				key += " " + l.GetValue()
			}
			out[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

// One turn and one delivery, seen from outside: every step is a span of the turn's
// own trace at the collector, and is counted at /metrics.
func TestWhatATurnTellsTheOperator(t *testing.T) {
	c := &collector{spans: map[string][]string{}}
	at := httptest.NewServer(c)
	t.Cleanup(at.Close)
	h := home.New(t)
	h.Vars = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + at.URL, "OTEL_BSP_SCHEDULE_DELAY=50"}
	r := start(t, h)
	told, words, code := h.Run("token", "create", "watch", "--json")
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(told), &made); err != nil || code != 0 {
		t.Fatalf("%v %s%s", err, told, words)
	}
	const trace = "0af7651916cd43dd8448eb211c80319c"
	call := func(method, path, body string) (got struct{ ID, Outcome, Phase string }) {
		t.Helper()
		req, err := http.NewRequest(method, r.base+path, bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+made.Token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Trace-Id", trace)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		if json.Unmarshal(b, &got) != nil || got.ID == "" {
			t.Fatalf("%s %s: %s %s", method, path, res.Status, b)
		}
		return got
	}
	if _, words, code := h.Run("budget", "set", "user", "1000M tokens", "--action", "warn"); code != 0 {
		t.Fatal(words)
	}
	thread := call("POST", "/sessions", `{"provider":"test"}`).ID
	call("POST", "/sessions/"+thread+"/runs", `{"text":"sim: say hello"}`)
	steps := []string{"turn", "claim", "start", "restore", "link", "validate", "run", "apply", "sync"}
	poll.Until(t, "the spans of the turn", func() bool { return c.has(trace, steps...) })

	// The result of a job is delivered by a turn in the delivery's own trace.
	told, words, code = h.Run("job", "submit", "--thread-id", thread, "--json")
	var job struct {
		ID string `json:"job_id"`
	}
	if err := json.Unmarshal([]byte(told), &job); err != nil || code != 0 {
		t.Fatalf("%v %s%s", err, told, words)
	}
	if _, words, code := h.Run("job", "complete", "--job-id", job.ID, "--summary", "sim: say got it"); code != 0 {
		t.Fatal(words)
	}
	poll.Until(t, "the spans of the delivery", func() bool {
		for id := range c.all() {
			if id != trace && c.has(id, "deliver", "turn", "run", "sync") {
				return true
			}
		}
		return false
	})

	got := r.measured()
	for name, least := range map[string]float64{
		"thole_queue_wait_seconds": 2, "thole_turn_seconds": 2, "thole_sync_seconds": 2, "thole_delivery_seconds": 1, "thole_model_wait_seconds": 2,
		"thole_turn_phase_seconds start": 1, "thole_turn_phase_seconds restore": 1, "thole_turn_phase_seconds link": 1,
		"thole_turn_phase_seconds validate": 1, "thole_turn_phase_seconds run": 2, "thole_turn_phase_seconds apply": 2, "thole_store_commit_seconds": 10,
		"thole_turn_time_seconds model": 2, "thole_turn_time_seconds tools": 2, "thole_turn_time_seconds human": 2, "thole_turn_time_seconds overhead": 2,
	} {
		if got[name] < least {
			t.Errorf("%s counts %v, at least %v happened", name, got[name], least)
		}
	}
	for _, name := range []string{
		"thole_turn_retries_total", "thole_deliveries_held_total", "thole_leases_fenced_total", "thole_slow_subscribers_total", "thole_syncs_failed_total",
	} {
		if n, ok := got[name]; !ok || n != 0 {
			t.Errorf("%s is %v, %v", name, n, ok)
		}
	}
	checkDashboard(t, got)
	if t.Failed() {
		t.Logf("spans: %v", c.all())
	}
}

var (
	metricName = regexp.MustCompile(`\b(thole|process|go)_[a-z_]+`)
	suffix     = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// checkDashboard wants nothing queried that is not exported, and every metric of thole's shown.
func checkDashboard(t *testing.T, samples map[string]float64) {
	b, err := os.ReadFile("../../../deploy/grafana/thole.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for key := range samples {
		name, _, _ := strings.Cut(key, " ")
		told[name] = true
	}
	asked := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				asked++
				if !told[suffix.ReplaceAllString(name, "")] && !told[name] {
					t.Errorf("%s asks for %s, which /metrics does not have", p.Title, name)
				}
			}
		}
	}
	if asked < 20 {
		t.Errorf("the dashboard asks for %d metrics", asked)
	}
	for name := range told {
		if strings.HasPrefix(name, "thole_") && !bytes.Contains(b, []byte(name)) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}
