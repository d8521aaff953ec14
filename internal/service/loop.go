package service

import (
	"context"
	"errors"
	"sync"
)

// Loop is a Part that is one function. run gets two contexts: it stops taking
// new work when accept ends and gives up what it has when kill ends.
type Loop struct {
	run  func(accept, kill context.Context) error
	fail func(error)

	mu    sync.Mutex // guards close and done
	close context.CancelFunc
	done  chan struct{}
	err   error // written before done is closed
}

// NewLoop makes a Loop. fail, when not nil, hears of a run that ends by itself
// with an error; usually it is Group.Fail.
func NewLoop(run func(accept, kill context.Context) error, fail func(error)) *Loop {
	return &Loop{run: run, fail: fail}
}

// Start runs the function; it may be called once.
func (l *Loop) Start(kill context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done != nil {
		return errors.New("service: loop was started before")
	}
	accept, stop := context.WithCancel(kill)
	l.close, l.done = stop, make(chan struct{})
	go func() {
		defer close(l.done)
		l.err = l.run(accept, kill)
		if l.err != nil && accept.Err() == nil && l.fail != nil {
			l.fail(l.err)
		}
	}()
	return nil
}

// Stop ends accept and waits for the function. The function's error is returned
// unless it is the cancellation we asked for.
func (l *Loop) Stop(context.Context) error {
	l.mu.Lock()
	stop, done := l.close, l.done
	l.mu.Unlock()
	if done == nil {
		return nil
	}
	stop()
	<-done
	if errors.Is(l.err, context.Canceled) {
		return nil
	}
	return l.err
}
