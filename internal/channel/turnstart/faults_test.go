package turnstart_test

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/delivery"
)

// proxy stands between the channel and the server. Once armed, by the durable
// barrier before a proposal, it kills the connection after a number of bytes in
// one direction, once.
type proxy struct {
	ln net.Listener
	to string
	wg sync.WaitGroup

	mu    sync.Mutex // guards what follows
	open  map[net.Conn]bool
	plan  cut
	armed bool
	sent  int
	cuts  int
	onCut func()      // called with the connection about to die
	onArm func()      // called when the barrier is durable
	onUp  func(n int) // called before the n-th message to the server after the barrier
	ups   int

	// rewrite changes what the server says, without changing its length.
	rewrite func([]byte)
}

// cut says where: after this many bytes towards the server (up) or from it.
type cut struct {
	up    bool
	after int
}

func newProxy(t testing.TB, to string, plan cut) *proxy {
	dir, err := os.MkdirTemp("", "px")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: to, open: map[net.Conn]bool{}, plan: plan}
	if p.ln, err = net.Listen("unix", filepath.Join(dir, "s")); err != nil {
		t.Fatal(err)
	}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		p.ln.Close()
		p.cutAll()
		p.wg.Wait()
		os.RemoveAll(dir)
	})
	return p
}

func (p *proxy) addr() string { return "unix://" + p.ln.Addr().String() }

func (p *proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("unix", p.to)
		if err != nil {
			c.Close()
			continue
		}
		p.mu.Lock()
		p.open[c], p.open[s] = true, true
		p.mu.Unlock()
		p.wg.Go(func() { p.pipe(s, c, true) })
		p.wg.Go(func() { p.pipe(c, s, false) })
	}
}

func (p *proxy) pipe(dst, src net.Conn, up bool) {
	defer dst.Close()
	defer src.Close()
	buf := make([]byte, 4096)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		if up {
			p.countUp()
		}
		if !up {
			p.mu.Lock()
			if p.rewrite != nil {
				p.rewrite(buf[:n])
			}
			p.mu.Unlock()
		}
		keep, die := p.allow(up, n)
		if _, err := dst.Write(buf[:keep]); err != nil || die {
			return
		}
	}
}

func (p *proxy) arm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.onArm != nil && !p.armed {
		p.onArm()
	}
	p.armed = true
}

// countUp counts the messages that go up after the barrier; the client's frames
// cannot be read here, and each is one read.
func (p *proxy) countUp() {
	p.mu.Lock()
	if p.armed {
		p.ups++
	}
	n, tell := p.ups, p.onUp
	p.mu.Unlock()
	if n > 0 && tell != nil {
		tell(n)
	}
}

// allow says how many of n bytes pass and whether the connection dies then.
func (p *proxy) allow(up bool, n int) (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed || p.cuts > 0 || up != p.plan.up {
		return n, false
	}
	if p.sent += n; p.sent <= p.plan.after {
		return n, false
	}
	p.cuts++
	if p.onCut != nil {
		p.onCut()
	}
	return n - (p.sent - p.plan.after), true
}

func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		c.Close()
	}
}

// outcome of one run with a cut.
type outcome struct {
	cut             cut
	made            bool // the cut happened
	delivered, held bool
	turns           int
	story           string
}

// cutRun delivers one result over a connection that is cut at a place that the
// seed chooses, and says what became of it. The proposal is half a kilobyte up and
// what it causes to be sent some kilobytes down; beyond lies the observation.
func cutRun(t *testing.T, c *codex, up bool, seed uint64) outcome {
	rnd := rand.New(rand.NewPCG(seed, 7))
	plan := cut{up: up, after: rnd.IntN(1500)}
	if !up {
		plan.after = rnd.IntN(8000)
	}
	p := newProxy(t, c.sock, plan)
	r := c.rig(t, p)
	r.deliver()
	r.job("sim: wait 100ms ;; say got it")
	v := r.until(settled)
	r.halt()
	p.mu.Lock()
	defer p.mu.Unlock()
	return outcome{
		cut: plan, made: p.cuts > 0, delivered: v.Batch.CloseReason == thole.CloseDelivered, held: v.Batch.HeldFor != "",
		turns: r.carrying(), story: r.story(),
	}
}

// With the server alive a cut connection loses nothing and doubles nothing, and
// holding everything is no answer.
func TestCutConnectionsDeliverOnce(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	for seed := range uint64(12) {
		o := cutRun(t, c, seed%2 == 0, seed)
		if !o.made {
			t.Logf("seed %d: nothing was cut by %+v", seed, o.cut)
		}
		if !o.delivered || o.turns != 1 {
			t.Errorf("seed %d: delivered %v, held %v, %d turns after %+v\n%s", seed, o.delivered, o.held, o.turns, o.cut, o.story)
		}
	}
}

// The server dies with the accepted turn: held, never sent again.
func TestServerKilledInTheTurn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.deliver()
	r.job("sim: say before ;; hang")
	r.until(func(v delivery.BatchView) bool { return v.Batch.AttemptCount == 1 })
	r.kill()
	if v := r.until(settled); v.Batch.HeldFor != "observation_lost" {
		t.Fatalf("held for %q\n%s", v.Batch.HeldFor, r.story())
	}
}

// The deliverer dies while the turn runs; its successor finds the same process
// and sees the end.
func TestSuccessorContinues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.deliver()
	r.job("sim: slow 100ms 3 ;; say a long answer that takes its time to be given in full")
	r.until(func(v delivery.BatchView) bool { return v.Batch.AttemptCount == 1 })
	r.halt()
	r.deliver()
	r.delivered(t)
}

// A stopped server (a laptop asleep) is silent for longer than the acceptance
// deadline. It lives, and may start the turn when it wakes: the attempt stays open,
// over a new deliverer too, and is delivered once.
func TestStoppedServer(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	pid := c.cmd.Process.Pid
	p := newProxy(t, c.sock, cut{up: true, after: 1 << 30})
	p.onArm = func() { _ = syscall.Kill(-pid, syscall.SIGSTOP) }
	t.Cleanup(func() { _ = syscall.Kill(-pid, syscall.SIGCONT) })
	r := c.rig(t, p)
	r.accept = time.Second
	r.deliver()
	r.job("sim: say got it")
	r.until(func(v delivery.BatchView) bool {
		if settled(v) {
			t.Fatalf("settled while the server slept: %+v\n%s", v.Batch, r.story())
		}
		return strings.Contains(r.story(), "attempt.overdue")
	})
	r.halt()
	r.deliver()
	if !strings.Contains(r.story(), "attempt.unsettled") {
		t.Errorf("nothing tells that the answer is missing:\n%s", r.story())
	}
	_ = syscall.Kill(-pid, syscall.SIGCONT)
	r.delivered(t)
}

// The server is killed around the proposal and comes back. What its store proves
// not to have run is sent again in the new epoch; a turn that was cut off is held.
func TestServerKilledAroundTheProposal(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		o := killRun(t, seed)
		if o.turns > 1 || o.delivered == o.held || o.delivered && o.turns != 1 {
			t.Errorf("seed %d: delivered %v, held %v, %d turns after %+v\n%s", seed, o.delivered, o.held, o.turns, o.cut, o.story)
		}
		t.Logf("seed %d: delivered %v, held %v", seed, o.delivered, o.held)
	}
}

func killRun(t *testing.T, seed uint64) outcome {
	rnd := rand.New(rand.NewPCG(seed, 11))
	plan := cut{up: seed%2 == 0, after: rnd.IntN(1200)}
	c := newCodex(t)
	p := newProxy(t, c.sock, plan)
	dead := make(chan struct{})
	p.onCut = func() { c.kill(); close(dead) }
	r := c.rig(t, p)
	r.deliver()
	r.job("sim: wait 100ms ;; say got it")
	r.until(func(v delivery.BatchView) bool { return settled(v) || v.Lane.Failures > 0 })
	renewed := false
	select {
	case <-dead:
		renewed = true
		r.renew()
	default: // ended before anything was cut, or is cut only now
	}
	v := r.until(settled)
	r.halt()
	p.mu.Lock()
	cuts := p.cuts
	p.mu.Unlock()
	if cuts > 0 && !renewed {
		r.renew() // to count the turns
	}
	return outcome{
		cut: plan, made: cuts > 0, delivered: v.Batch.CloseReason == thole.CloseDelivered, held: v.Batch.HeldFor != "",
		turns: r.carrying(), story: r.story(),
	}
}
