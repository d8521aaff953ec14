package system

import (
	"context"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/platform/preview"
)

// MethodPort opens, closes and lists ports of a thread's agent. Who has the home's
// socket is its owner: no scope is asked for.
const MethodPort = "thole/thread/port"

func errNoPage() error {
	return thole.Errorf(thole.CodeUnavailable, "no web page is served, and ports are shown next to it").WithHint("start it with: thole up")
}

// PortParams name a thread and a port; without a port those that are open are listed.
type PortParams struct {
	Thread thole.ThreadID `json:"thread_id"`
	Port   uint16         `json:"port,omitempty"`
	Close  bool           `json:"close,omitempty"`
}

// PortResult has the ports that were asked for.
type PortResult struct {
	Ports []preview.Port `json:"ports"`
}

func (p *web) port(ctx context.Context, actor thole.Actor, in PortParams) (PortResult, error) {
	out := PortResult{Ports: []preview.Port{}}
	if _, err := p.threads.Get(ctx, actor, in.Thread); err != nil {
		return out, err
	}
	switch {
	case in.Port == 0:
		out.Ports = p.ports.List(ctx, in.Thread)
		return out, nil
	case in.Close:
		return out, p.ports.Close(in.Thread, in.Port)
	}
	opened, err := p.ports.Open(ctx, in.Thread, in.Port, preview.By{})
	if err == nil {
		out.Ports = append(out.Ports, opened)
	}
	return out, err
}
