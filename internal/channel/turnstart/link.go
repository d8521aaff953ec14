package turnstart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/attachment"
	"github.com/tholehq/thole/internal/attachment/keeper"
	"github.com/tholehq/thole/internal/channel/turnend"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/protocol/app"
)

// needed is what a server must have. Without all of it nothing is sent.
var needed = []string{
	"thread/resume", "thread/read", "thread/turns/list", "thread/items/list", "turn/interrupt", "turn/start",
}

// queueing is what the durable queue takes, trying what it takes to try it. A
// server without all of it is sent turns directly.
var (
	queueing = []string{"thread/queue/add", "thread/queue/list", "thread/queue/delete", "thread/queue/start"}
	trying   = []string{"thread/start", "thread/shellCommand", "thread/loaded/list", "thread/delete"}
)

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

	joined atomic.Bool // the server reports the thread
	// news counts the announcements of other settings of the thread; fit is news as
	// it was before the survey that last let a delivery pass, -1: none did.
	news, fit atomic.Int64

	mu      sync.Mutex
	changed chan struct{}        // closed and replaced when something was notified
	opened  recent[openedBy]     // turns seen opening since the connection was made
	ended   recent[turnend.Read] // what turn/completed said of those that ended since
}

// openedBy is the marker of the message that opened a turn, once it was seen.
type openedBy struct {
	marker string
	known  bool
}

// keepTurns bounds what a link remembers of turns.
const keepTurns = 64

// recent remembers something of the newest turns.
type recent[T any] struct {
	of    map[string]T
	order []string // oldest first
}

func (r *recent[T]) put(turn string, v T) {
	if r.of == nil {
		r.of = map[string]T{}
	}
	if _, ok := r.of[turn]; !ok {
		r.order = append(r.order, turn)
	}
	r.of[turn] = v
	if len(r.order) > keepTurns {
		delete(r.of, r.order[0])
		r.order = slices.Delete(r.order, 0, 1)
	}
}

func (c *Channel) options() appclient.Options {
	o := Options()
	o.Experimental = !c.plain
	return o
}

// Options introduce thole to an app-server, as an observer.
func Options() appclient.Options {
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
	if l != nil && l.epoch == a.Epoch && !l.over() {
		return l, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	l = &link{epoch: a.Epoch, changed: make(chan struct{})}
	l.fit.Store(-1)
	o := c.options()
	o.OnNotification = l.notified
	client, err := c.dial(ctx, a, o)
	if err != nil {
		return nil, err
	}
	if l.archive, err = open(ctx, client, a.Thread); err != nil {
		client.Close()
		return nil, err
	}
	if home := client.Server().CodexHome; !sameDir(home, a.Home) {
		client.Close()
		return nil, thole.Errorf(thole.CodeUnsupported, "the app-server at %s serves the Codex home %s, not %s", a.Address, home, a.Home)
	}
	if err := a.Process.Alive(); err != nil {
		client.Close()
		return nil, err
	}
	c.mu.Lock()
	old := c.links[a.ID]
	maps.DeleteFunc(c.links, func(_ thole.AttachmentID, l *link) bool { return l.over() })
	c.links[a.ID] = l
	c.mu.Unlock()
	if old != nil {
		old.client.Close()
	}
	return l, nil
}

// dial connects to the attachment's own process: another process that answers at its
// address gets nothing.
func (c *Channel) dial(ctx context.Context, a attachment.Attachment, o appclient.Options) (*appclient.Client, error) {
	client, err := appclient.Dial(ctx, a.Address, o)
	if err != nil {
		return nil, fmt.Errorf("connect to the app-server: %w", err)
	}
	peer := client.PeerPID()
	if c.serverOf != nil {
		peer = c.serverOf(peer)
	}
	if err := keeper.Serves(&a, peer); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// over reports whether the connection ended.
func (l *link) over() bool {
	select {
	case <-l.client.Done():
		return true
	default:
		return false
	}
}

func sameDir(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// open asks the server for its methods, which it lists when it is asked for one it
// does not have.
func open(ctx context.Context, c *appclient.Client, thread thole.ThreadID) (archive, error) {
	a := archive{client: c, thread: string(thread)}
	err := c.Call(ctx, "thole/capabilities", params{}, nil)
	switch {
	case err == nil:
		return a, thole.Errorf(thole.CodeUnsupported, "the server answers a method that does not exist: it is no Codex app-server")
	case !refused(err):
		return a, fmt.Errorf("ask the app-server for its methods: %w", err)
	}
	lacks := func(methods []string) (out []string) {
		for _, m := range methods {
			if !strings.Contains(err.Error(), "`"+m+"`") {
				out = append(out, m)
			}
		}
		return out
	}
	if missing := lacks(needed); len(missing) > 0 {
		return a, thole.Errorf(thole.CodeUnsupported, "app-server %s lacks %s", c.Server().UserAgent, strings.Join(missing, ", ")).
			WithHint("update codex to 0.166 or newer")
	}
	// A method that is listed may still be closed to this client.
	if a.queued = len(lacks(slices.Concat(queueing, trying))) == 0; a.queued {
		_, err := a.queue(ctx)
		if err != nil && !refused(err) {
			return a, err
		}
		a.queued = err == nil || !strings.Contains(err.Error(), "experimental")
	}
	return a, nil
}

// Capable says how a server can be sent deliveries, or why not.
func Capable(ctx context.Context, c *appclient.Client) (string, error) {
	a, err := open(ctx, c, "")
	switch {
	case err != nil:
		return "", err
	case a.queued:
		return "by its durable queue", nil
	}
	return "by guarded turn/start: it has no queue", nil
}

// resume subscribes, which keeps the thread loaded, and returns its settings.
func (l *link) resume(ctx context.Context) (wireView, error) {
	var v wireView
	err := l.call(ctx, "thread/resume", params{"excludeTurns": true}, &v)
	if err != nil && strings.Contains(err.Error(), "no rollout found") {
		return v, thole.Errorf(thole.CodeUnavailable, "the thread has no turn yet, so its permissions cannot be read")
	}
	if err == nil {
		l.joined.Store(true)
	}
	return v, err
}

// subscribe makes sure that the server reports the thread. It resumes only if it
// must, because every resume is sent to every client.
func (l *link) subscribe(ctx context.Context) error {
	if l.joined.Load() {
		return nil
	}
	_, err := l.resume(ctx)
	return err
}

// permissions reads the thread's settings and what they allow.
func (l *link) permissions(ctx context.Context) (settings attachment.Settings, now attachment.PermissionSnapshot, err error) {
	view, err := l.resume(ctx)
	if err != nil {
		return settings, now, err
	}
	now, err = attachment.Read(view.Settings)
	return view.Settings, now, err
}

// survey reads all that a probe needs at once. The status is not the one that
// resume reports: after a review that stays active for ever. The settings are: resume
// waits for changes that the server has taken and not yet announced.
func (l *link) survey(ctx context.Context) (view wireView, th wireThread, queue []app.QueuedSubmission, err error) {
	var wg sync.WaitGroup
	var errs [3]error
	wg.Go(func() { view, errs[0] = l.resume(ctx) })
	wg.Go(func() { th, errs[1] = l.status(ctx) })
	wg.Go(func() { queue, errs[2] = l.queue(ctx) })
	wg.Wait()
	return view, th, queue, errors.Join(errs[:]...)
}

// notified wakes the waiters, and remembers who opened the turns that were seen
// starting.
func (l *link) notified(n appclient.Notification) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n.Method {
	case "thread/settings/updated":
		if thread, _ := turnOf(n.Params); thread == l.thread {
			l.news.Add(1)
		}
	case "turn/started":
		if thread, turn := turnOf(n.Params); thread == l.thread {
			if _, ok := l.opened.of[turn.ID()]; !ok {
				l.opened.put(turn.ID(), openedBy{})
			}
		}
	case "turn/completed":
		if thread, turn := turnOf(n.Params); thread == l.thread {
			l.ended.put(turn.ID(), turn)
		}
	case "item/started", "item/completed":
		thread, turn, item := userMessage(n.Params)
		if by, ok := l.opened.of[turn]; ok && thread == l.thread && item.Type == "userMessage" && !by.known {
			by.known = true
			if item.ClientID != nil {
				by.marker = *item.ClientID
			}
			l.opened.put(turn, by)
		}
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// completed is what turn/completed reported of a turn, the zero Read if it did not arrive.
func (l *link) completed(turn thole.TurnID) turnend.Read {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended.of[string(turn)]
}

// next is closed at the next notification. Take it before looking.
func (l *link) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}
