package execclient

import (
	"context"
	"time"

	"github.com/tholehq/thole/internal/relay"
	"github.com/tholehq/thole/internal/relay/noise"
)

// Relay is the way to an executor that connects to a relay instead of listening. Every
// connection is encrypted between this process and the executor.
type Relay struct {
	URL           string // of the registry: https://, or http:// to loopback
	EnvironmentID string
	Token         string // sent to the registry only
	// ExecutorKey is the fingerprint of the executor's key, as it prints at its
	// start. Without it the registry is believed.
	ExecutorKey string
	// IdentitySeed is a key to be known by; nil makes one for this client.
	IdentitySeed []byte
}

// relayCall bounds a dial through a relay, whose executor may be about to reconnect.
const relayCall = 25 * time.Second

// DialRelay opens a session through a relay. A lost connection is resumed over a new
// stream.
func DialRelay(ctx context.Context, r Relay, o Options) (*Client, error) {
	dial, err := r.Dialer()
	if err != nil {
		return nil, err
	}
	o.Dial = dial
	if o.CallFor <= 0 {
		o.CallFor = relayCall
	}
	return Open(ctx, o)
}

// Dialer returns what opens streams through the relay, for Options.Dial.
func (r Relay) Dialer() (func(context.Context) (Stream, error), error) {
	reg, err := relay.NewRegistry(r.URL, r.EnvironmentID, func() (string, error) { return r.Token, nil })
	if err != nil {
		return nil, err
	}
	d := &relay.Dialer{Registry: reg}
	if r.ExecutorKey != "" {
		if d.Executor, err = noise.ParseFingerprint(r.ExecutorKey); err != nil {
			return nil, err
		}
	}
	if r.IdentitySeed == nil {
		d.Identity, err = noise.NewIdentity()
	} else {
		d.Identity, err = noise.ParseIdentity(r.IdentitySeed)
	}
	if err != nil {
		return nil, err
	}
	return d.Dial, nil
}
