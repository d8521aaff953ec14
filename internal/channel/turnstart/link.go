package turnstart

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/version"
)

// needed is what a server must have. Without all of it nothing is sent.
var needed = []string{
	"thread/resume", "thread/read", "thread/turns/list", "thread/items/list", "thread/unsubscribe", "turn/interrupt",
	"thread/queue/add", "thread/queue/list", "thread/queue/delete", "thread/queue/start",
}

// optOut keeps the stream thin: only the ends of things are of interest.
var optOut = []string{
	"item/agentMessage/delta", "item/plan/delta", "item/reasoning/summaryTextDelta", "item/reasoning/textDelta",
	"item/reasoning/summaryPartAdded", "item/commandExecution/outputDelta", "turn/diff/updated", "turn/plan/updated",
	"thread/tokenUsage/updated", "account/rateLimits/updated",
}

// link is the observer connection of one attachment.
type link struct {
	archive
	epoch int64

	mu      sync.Mutex
	changed chan struct{}       // closed and replaced when something was notified
	opened  map[string]openedBy // turns seen opening since the connection was made
	order   []string            // of opened, oldest first
}

// openedBy is the marker of the message that opened a turn, once it was seen.
type openedBy struct {
	marker string
	known  bool
}

// keepOpened bounds what a link remembers of turns.
const keepOpened = 64

func options() appclient.Options {
	return appclient.Options{Name: "thole", Version: version.Version, Experimental: true, OptOut: optOut}
}

// connect returns a working connection to the attachment's server. That the
// process is the attachment's own is proven before and after.
func (c *Channel) connect(ctx context.Context, a attachment.Attachment) (*link, error) {
	if err := a.Process.Alive(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	l := c.links[a.ID]
	c.mu.Unlock()
	if l != nil && l.epoch == a.Epoch {
		select {
		case <-l.client.Done():
		default:
			return l, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	l = &link{epoch: a.Epoch, changed: make(chan struct{}), opened: map[string]openedBy{}}
	o := options()
	o.OnNotification = l.notified
	client, err := appclient.Dial(ctx, a.Address, o)
	if err != nil {
		return nil, fmt.Errorf("connect to the app-server: %w", err)
	}
	l.archive = archive{client: client, thread: string(a.Thread)}
	if err := lacking(ctx, client); err != nil {
		client.Close()
		return nil, err
	}
	if err := a.Process.Alive(); err != nil {
		client.Close()
		return nil, err
	}
	c.mu.Lock()
	old := c.links[a.ID]
	c.links[a.ID] = l
	c.mu.Unlock()
	if old != nil {
		old.client.Close()
	}
	return l, nil
}

// lacking asks the server for its methods, which it lists when it is asked for one
// it does not have.
func lacking(ctx context.Context, c *appclient.Client) error {
	err := c.Call(ctx, "thole/capabilities", params{}, nil)
	switch {
	case err == nil:
		return thole.Errorf(thole.CodeUnsupported, "the server answers a method that does not exist: it is no Codex app-server")
	case !refused(err):
		return fmt.Errorf("ask the app-server for its methods: %w", err)
	}
	var missing []string
	for _, m := range needed {
		if !strings.Contains(err.Error(), "`"+m+"`") {
			missing = append(missing, m)
		}
	}
	if len(missing) > 0 {
		return thole.Errorf(thole.CodeUnsupported, "app-server %s lacks %s", c.Server().UserAgent, strings.Join(missing, ", ")).
			WithHint("update codex to 0.166 or newer")
	}
	return nil
}

// resume subscribes, which keeps the thread loaded, and returns its settings.
func (l *link) resume(ctx context.Context) (wireView, error) {
	var v wireView
	err := l.call(ctx, "thread/resume", params{"excludeTurns": true}, &v)
	if err != nil && strings.Contains(err.Error(), "no rollout found") {
		return v, thole.Errorf(thole.CodeUnavailable, "the thread has no turn yet, so its permissions cannot be read")
	}
	return v, err
}

// notified wakes whoever waits, and remembers who opened the turns that were seen
// starting.
func (l *link) notified(n appclient.Notification) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n.Method {
	case "turn/started":
		if thread, turn := turnOf(n.Params); thread == l.thread {
			l.remember(turn)
		}
	case "item/started", "item/completed":
		thread, turn, item := userMessage(n.Params)
		if by, ok := l.opened[turn]; ok && thread == l.thread && item.Type == "userMessage" && !by.known {
			by.known = true
			if item.ClientID != nil {
				by.marker = *item.ClientID
			}
			l.opened[turn] = by
		}
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *link) remember(turn string) {
	if _, ok := l.opened[turn]; ok {
		return
	}
	l.opened[turn] = openedBy{}
	if l.order = append(l.order, turn); len(l.order) > keepOpened {
		delete(l.opened, l.order[0])
		l.order = slices.Delete(l.order, 0, 1)
	}
}

// next is closed at the next notification. Take it before looking.
func (l *link) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}
