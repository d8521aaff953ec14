package httpapi_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/platform/httpapi"
	"github.com/tholehq/thole/internal/sqldb"
	"github.com/tholehq/thole/internal/store/storetest"
)

// reporting is a server with real deliveries.
func reporting(t *testing.T) (*rig, *delivery.Machine) {
	db := storetest.SQLite(t)
	machine := delivery.New(delivery.Config{Store: db.Delivery(), Limits: delivery.DefaultLimits()})
	keeper, err := artifact.New(artifact.Config{Dir: filepath.Join(t.TempDir(), "artifacts"), Store: db.Artifacts()})
	if err != nil {
		t.Fatal(err)
	}
	var cfg *httpapi.Config
	methods := (&daemon.Delivery{
		Machine: machine, Keeper: keeper, Unsure: sqldb.OutcomeUnknown, Now: time.Now, Output: func(thole.JobID) string { return "" },
		Forecast: func(context.Context, delivery.Address, thole.Target, thole.DeliveryPolicy) wire.Forecast {
			return wire.Forecast{Automatic: true}
		},
		Known: func(ctx context.Context, a delivery.Address, _ thole.Target) error {
			_, err := cfg.Threads.Get(ctx, thole.Actor{User: a.User, Via: "test"}, a.Thread)
			return err
		},
	}).Methods()
	g := newRig(t, func(c *httpapi.Config) {
		cfg = c
		c.Deliveries = func(method string) httpapi.Method { return httpapi.Method(methods[method]) }
	})
	return g, machine
}

// raw posts a body of any type.
func (c *caller) raw(status int, path, media string, body []byte) string {
	c.g.t.Helper()
	r := c.request("POST", path, nil)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Type", media)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		c.g.t.Fatal(err)
	}
	defer res.Body.Close()
	out, _ := io.ReadAll(res.Body)
	if res.StatusCode != status {
		c.g.t.Fatalf("POST %s: %s, want %d: %s", path, res.Status, status, out)
	}
	return string(out)
}

// CI elsewhere reports a job with a token that can do nothing else: once, however often it
// repeats a request.
func TestReportsFromElsewhere(t *testing.T) {
	g, machine := reporting(t)
	session := g.me.session(nil)
	var made, out, again obj
	g.me.call(201, "POST", "/auth/tokens", obj{"name": "ci", "scope": "jobs"}, &made)
	ci := &caller{g: g, header: http.Header{"Authorization": {"Bearer " + made["token"].(string)}}}
	for _, refused := range [][2]string{{"GET", "/jobs"}, {"GET", "/sessions"}, {"GET", "/sessions/" + session}, {"GET", "/auth/session"}, {"POST", "/sessions/" + session + "/runs"}, {"POST", "/batches/" + uuid(1) + "/deliver"}, {"GET", "/jobs/" + uuid(1)}} {
		ci.call(403, refused[0], refused[1], obj{"text": "x"}, nil)
	}
	(&caller{g: g, header: http.Header{"Sec-Fetch-Site": {"same-origin"}}}).call(403, "POST", "/auth/login", obj{"token": made["token"]}, nil)

	keyed := ci.with("Idempotency-Key", "build-7")
	work := obj{"session_id": session, "task_kind": "ci", "summary": "unit tests", "metadata": obj{"run": 7}, "delivery_policy": obj{"read_only": true}}
	keyed.call(201, "POST", "/jobs", work, &out)
	keyed.call(201, "POST", "/jobs", work, &again)
	keyed.call(422, "POST", "/jobs", obj{"session_id": session, "task_kind": "ci", "summary": "unit tests"}, nil)
	if out["job_id"] != again["job_id"] {
		t.Errorf("a repeat made another job: %v, %v", out, again)
	}
	id := out["job_id"].(string)
	j, _, err := machine.Job(t.Context(), thole.LocalActor, thole.JobID(id))
	if err != nil || j.Thread != thole.ThreadID(session) || j.TaskKind != "ci" || !j.Policy.ReadOnly || !j.Policy.RequiresNetwork || !strings.Contains(j.Metadata, `"run":7`) {
		t.Fatalf("%+v, %v", j, err)
	}
	ci.call(404, "POST", "/jobs", obj{"session_id": uuid(99)}, nil)
	ci.call(404, "POST", "/jobs", obj{"session_id": g.you.session(nil)}, nil)
	ci.call(422, "POST", "/jobs", obj{"session_id": session, "command": []string{"rm"}}, nil)

	done := "/jobs/" + id + "/complete?summary=412+passed&name=report.txt&exit_code=0"
	report := []byte("ok: 412 tests\n")
	for range 2 {
		if got := ci.with("Idempotency-Key", "done-7").raw(200, done, "text/plain", report); !strings.Contains(got, `"ready"`) {
			t.Errorf("%s", got)
		}
	}
	ci.raw(200, done, "text/plain", report) // the same result again is no conflict, also without a key
	ci.raw(409, done, "text/plain", []byte("failed: 3 tests\n"))
	if j, _, _ = machine.Job(t.Context(), thole.LocalActor, thole.JobID(id)); j.Inline != string(report) || j.ResultSummary != "412 passed" || j.ExitCode != 0 {
		t.Errorf("%+v", j)
	}

	ci.call(201, "POST", "/jobs", obj{"session_id": session}, &out)
	fail := "/jobs/" + out["job_id"].(string) + "/fail"
	for path, status := range map[string]int{fail + "?name=../../etc/passwd": 422, fail + "?exit_code=-1": 422, "/jobs/none/fail": 404, "/jobs/" + uuid(5) + "/fail": 404} {
		ci.raw(status, path, "application/json", []byte(`{}`))
	}
	ci.raw(422, fail, "application/json", []byte(`{"summary":"no","Result":"x"}`))
	g.you.raw(404, fail, "application/json", []byte(`{}`))
	ci.raw(413, fail, "text/plain", make([]byte, 25<<20))
	ci.call(200, "POST", fail, obj{"summary": "3 of 412 failed", "result": "the log", "exit_code": 2}, &out)
	if out["status"] != "failed" || out["exit_code"] != 2.0 || out["result_summary"] != "3 of 412 failed" {
		t.Errorf("%v", out)
	}
}

// A person lets a held batch go, and says so where it may have arrived.
func TestDeliverOverHTTP(t *testing.T) {
	g, machine := reporting(t)
	session := g.me.session(nil)
	var out obj
	g.me.call(201, "POST", "/jobs", obj{"session_id": session}, &out)
	g.me.call(200, "POST", "/jobs/"+out["job_id"].(string)+"/complete", obj{}, &out)
	all, err := machine.Batches(t.Context(), thole.LocalActor, delivery.BatchFilter{})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	b := all[0].Batch
	path := "/batches/" + string(b.ID) + "/deliver"
	g.me.call(409, "POST", path, obj{}, nil)
	if err := machine.Hold(t.Context(), thole.SystemActor, b.LaneID, b.ID, "policy", nil); err != nil {
		t.Fatal(err)
	}
	g.you.call(404, "POST", path, obj{"anyway": true}, nil)
	g.me.call(200, "POST", path, obj{}, &out)
	if out["released_by"] != string(thole.LocalUser) || out["replay_policy"] != "automatic" {
		t.Errorf("%v", out)
	}
}
