package system

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tholehq/thole/internal/daemon/executors"
	"github.com/tholehq/thole/internal/dispatch"
	"github.com/tholehq/thole/internal/thread"
)

// part makes a service.Part of two functions.
type part struct {
	start, stop func(context.Context) error
}

func (p *part) Start(ctx context.Context) error {
	if p.start == nil {
		return nil
	}
	return p.start(ctx)
}

func (p *part) Stop(ctx context.Context) error { return p.stop(ctx) }

// background is a part that runs until it is stopped.
func background(run func(context.Context)) *part {
	var stop context.CancelFunc
	done := make(chan struct{})
	return &part{
		start: func(ctx context.Context) error {
			ctx, stop = context.WithCancel(ctx)
			go func() {
				defer close(done)
				run(ctx)
			}()
			return nil
		},
		stop: func(context.Context) error {
			stop()
			<-done
			return nil
		},
	}
}

func startAll(all ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, start := range all {
			if err := start(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// stopThreads lets go of running turns (they go on in their executors), says which
// do, and delivers what subscribers have pending.
func stopThreads(threads *thread.Machine, dispatcher *dispatch.Dispatcher, asked *executors.Service, leaves func([]executors.Left), log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		err := dispatcher.Stop(ctx)
		if leaves != nil {
			left, unknown := asked.Left(ctx)
			if unknown != nil {
				log.Warn("list what goes on", "err", unknown)
			}
			leaves(left)
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return errors.Join(err, threads.Close(ctx))
	}
}
