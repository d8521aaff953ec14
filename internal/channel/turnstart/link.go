package turnstart

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
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
	reads  atomic.Bool // the server lets its history be read
	// news counts the announcements of other settings of the thread; fit is news as
	// it was before the survey that last let a delivery pass, -1: none did.
	news, fit atomic.Int64

	mu      sync.Mutex
	changed chan struct{}        // closed and replaced when something was notified
	opened  recent[openedBy]     // turns seen opening since the connection was made
	ended   recent[turnend.Read] // what turn/completed said of those that ended since
	items   recent[[]string]     // kinds of the items of those seen opening
	granted grant                // what may be steered, by the last probe
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
	if l.archive, err = open(ctx, client, a.Thread, o.Experimental); err != nil {
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

// open looks how a server is sent deliveries: by its queue, if it has one. What a server
// can do is seen in what its calls do, and never read out of its sentences: one that
// refuses the queue of a thread has none if it refuses that of a fresh conversation, too.
func open(ctx context.Context, c *appclient.Client, thread thole.ThreadID, queues bool) (archive, error) {
	a := archive{client: c, thread: string(thread), queued: queues}
	if !queues {
		return a, nil
	}
	_, err := a.queue(ctx)
	if !refused(err) {
		return a, err
	}
	fresh := archive{client: c, queued: true}
	e := fresh.converse(ctx, func() error { _, err := fresh.queue(ctx); return err })
	switch {
	case e == nil:
		return a, thole.Errorf(thole.CodeUnavailable, "the server refuses the queue of thread %s: %w", thread, err)
	case !refused(e):
		return a, e
	}
	a.queued = false
	return a, nil
}

// outdated is what to do about a server that lacks something.
const outdated = "update codex to 0.166 or newer"

// able proves, once, that the thread's history can be read: what is sent could not be
// proven otherwise.
func (l *link) able(ctx context.Context) error {
	if l.reads.Load() {
		return nil
	}
	for _, method := range []string{"thread/turns/list", "thread/items/list"} {
		err := l.call(ctx, method, params{"limit": 1}, nil)
		if refused(err) {
			return thole.Errorf(thole.CodeUnsupported, "app-server %s refuses %s: %w", l.client.Server().UserAgent, method, err).WithHint(outdated)
		}
		if err != nil {
			return err
		}
	}
	l.reads.Store(true)
	return nil
}

// Capable says how a server can be sent deliveries, or why not.
func Capable(ctx context.Context, c *appclient.Client) (how string, err error) {
	a := archive{client: c, queued: true}
	err = a.converse(ctx, func() error { _, err := a.queue(ctx); return err })
	switch {
	case err == nil:
		return "by its durable queue", nil
	case refused(err) && a.thread != "":
		return "by guarded turn/start: it has no queue", nil
	case refused(err):
		return "", thole.Errorf(thole.CodeUnsupported, "app-server %s starts no conversation: %w", c.Server().UserAgent, err).WithHint(outdated)
	}
	return "", err
}

// resume subscribes, which keeps the thread loaded, and returns its settings. A thread
// before its first turn has none yet.
func (l *link) resume(ctx context.Context) (wireView, error) {
	var v wireView
	err := l.call(ctx, "thread/resume", params{"excludeTurns": true}, &v)
	if refused(err) {
		return v, thole.Errorf(thole.CodeUnavailable, "the thread cannot be resumed, as before its first turn: %w", err)
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
		if _, ok := l.opened.of[turn]; ok && thread == l.thread {
			l.items.put(turn, append(slices.Clone(l.items.of[turn]), item.Type))
		}
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
