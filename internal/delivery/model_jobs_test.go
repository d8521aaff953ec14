package delivery_test

import (
	"fmt"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

func (p *player) stepSubmit() string {
	lane := p.lane()
	var parent thole.JobID
	if len(p.jobIDs) > 0 && p.pick(3) == 0 {
		c := p.jobIDs[p.pick(len(p.jobIDs))]
		if j := p.m.jobs[c]; j.lane.name == lane && j.state == thole.JobRunning {
			parent = c
		}
	}
	job := p.submission(lane, targetOf(lane), func(s *delivery.Submit) { s.Parent = parent })
	id := job.ID
	p.ok(p.insist(func() error {
		_, _, err := p.Submit(ctx, actor, job)
		return err
	}))
	p.m.submit(lane, targetOf(lane) == thole.TargetDesktop, id, parent)
	p.jobIDs = append(p.jobIDs, id)
	return "submit " + lane
}

// stepEnqueue hands in a result as a plugin does: submitted and finished at once.
func (p *player) stepEnqueue() string {
	lane := p.lane()
	job := p.submission(lane, targetOf(lane))
	text := strings.Repeat("x", []int{1, 40, 70}[p.pick(3)])
	p.ok(p.insist(func() error {
		_, _, err := p.Enqueue(ctx, actor, job, delivery.Finish{Job: job.ID, State: thole.JobReady, Request: string(job.ID), Inline: text})
		return err
	}))
	p.m.submit(lane, targetOf(lane) == thole.TargetDesktop, job.ID, "")
	p.m.finish(job.ID, thole.JobReady, len(text))
	p.jobIDs = append(p.jobIDs, job.ID)
	return "enqueue " + lane
}

func (p *player) someJob() (thole.JobID, bool) {
	if len(p.jobIDs) == 0 {
		return "", false
	}
	return p.jobIDs[p.pick(len(p.jobIDs))], true
}

func (p *player) stepFinish() string {
	id, ok := p.someJob()
	if !ok {
		return "-"
	}
	state := []thole.JobState{thole.JobReady, thole.JobFailed}[p.pick(2)]
	text := strings.Repeat("x", []int{1, 40, 70, 200}[p.pick(4)])
	j := p.m.jobs[id]
	legal := j.state == thole.JobRunning && j.settled == ""
	request := p.id()
	err := p.insist(func() error {
		_, err := p.Finish(ctx, actor, delivery.Finish{Job: id, State: state, Request: request, Inline: text})
		return err
	})
	if legal != (err == nil) {
		p.rt.Fatalf("finish of %s job: %v", j.state, err)
	}
	if legal {
		p.m.finish(id, state, len(text))
	}
	return fmt.Sprintf("finish %s %v", id, legal)
}

func (p *player) stepCancel() string {
	id, ok := p.someJob()
	if !ok {
		return "-"
	}
	request := p.id()
	err := p.insist(func() error {
		_, err := p.Cancel(ctx, actor, id, request, "")
		return err
	})
	if want := p.m.cancel(id); want != (err == nil) {
		p.rt.Fatalf("cancel: %v, want %v", err, want)
	}
	return "cancel " + string(id)
}
