package system

import (
	"context"
	"errors"
	"time"

	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/wire"
)

// takeoverWait bounds how long a new owner waits for the old one to finish.
const takeoverWait = time.Minute

// own takes the home, from an owner that is asked to hand it over if there is one
// and the options say so.
func own(ctx context.Context, o Options) (*daemon.Owner, error) {
	if !o.Takeover {
		return daemon.Own(ctx, o.Config.Home, 0)
	}
	old := daemonclient.Client{Home: o.Config.Home, NoStart: true}
	ask := wire.StopParams{Handover: true}
	if o.Role != "daemon" {
		ask.Unless = o.Role
	}
	if err := old.Call(ctx, wire.DaemonStop, ask, nil); err != nil && !errors.Is(err, daemonclient.ErrNobody) {
		return nil, err
	}
	return daemon.Own(ctx, o.Config.Home, takeoverWait)
}
