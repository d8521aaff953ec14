package daemon

import (
	"context"
	"net"
	"sync"

	"github.com/tholehq/thole/internal/peercred"
	"github.com/tholehq/thole/internal/plugin"
)

// Peer is the process at the other end of a connection of JSON lines, as the kernel named it
// when it connected.
type Peer struct {
	PID int // 0: the system does not report it

	mu     sync.Mutex // guards plugin
	plugin *plugin.Instance
}

// Plugin is the instance that the peer introduced itself as; nil: none.
func (p *Peer) Plugin() *plugin.Instance {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plugin
}

func (p *Peer) introduce(in *plugin.Instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plugin = in
}

type peerKey struct{}

// WithPeer gives a call its peer.
func WithPeer(ctx context.Context, p *Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerOf is the peer of a call; nil for one that came another way.
func PeerOf(ctx context.Context) *Peer {
	p, _ := ctx.Value(peerKey{}).(*Peer)
	return p
}

// peerOf names the process of a connection, which the listener has proven to be of our user.
func peerOf(c net.Conn) *Peer {
	cred, err := peercred.SameUser(c)
	if err != nil {
		return &Peer{}
	}
	return &Peer{PID: cred.PID}
}
