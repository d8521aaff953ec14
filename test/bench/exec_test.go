//go:build linux

package bench

import (
	"fmt"
	osexec "os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/lab"
)

const (
	trueArgv = `["/usr/bin/true"]`
	floor    = "Go os/exec with captured output"
	original = "codex exec-server " + lab.CodexVersion
)

// short chooses a size for the short form or the long one.
func short[T any](s, l T) T {
	if Long() {
		return l
	}
	return s
}

func floorOnce(t testing.TB) {
	if _, err := osexec.Command("/usr/bin/true").CombinedOutput(); err != nil {
		t.Error(err)
	}
}

// quantile runs one n times and returns a quantile in milliseconds.
func quantile(n int, q float64, one func()) float64 {
	d := make([]float64, n)
	for i := range d {
		began := time.Now()
		one()
		d[i] = float64(time.Since(began)) / float64(time.Millisecond)
	}
	slices.Sort(d)
	return d[min(n-1, int(q*float64(n)))]
}

func TestExecOneShot(t *testing.T) {
	ours, real := launch(t, tholeServer(t)), launch(t, codexServer(t))
	n := short(20, 100)
	arm := func(q float64, one func()) func() float64 {
		one() // warm up
		return func() float64 { return quantile(n, q, one) }
	}
	shot := func(s execServer, ack bool) func() {
		p := dialProbe(t, s.url, ack)
		return func() { p.oneShot(trueArgv) }
	}
	bare := func() { floorOnce(t) }
	const note = "/usr/bin/true, from sending process/start to process/closed, one at a time over loopback"
	Case{Name: "exec: one shot, median, to the floor", Unit: "ms", Peer: floor, Promise: 1.3, Loose: 2.5, Note: note,
		Ours: arm(0.5, shot(ours, false)), Theirs: arm(0.5, bare)}.Run(t)
	Case{Name: "exec: one shot, 95th percentile, to the floor", Unit: "ms", Peer: floor, Promise: 2, Loose: 5, Note: note,
		Ours: arm(0.95, shot(ours, false)), Theirs: arm(0.95, bare)}.Run(t)
	Case{Name: "exec: one shot, median, TCP_QUICKACK forced for both", Unit: "ms", Peer: original, Promise: 1.0 / 5, Loose: 0.5, Note: note,
		Ours: arm(0.5, shot(ours, true)), Theirs: arm(0.5, shot(real, true))}.Run(t)
	Case{Name: "exec: one shot, median, as it ships", Unit: "ms", Peer: original, Promise: 1.0 / 30, Loose: 0.15, Note: note,
		Ours: arm(0.5, shot(ours, false)), Theirs: arm(0.5, shot(real, false))}.Run(t)
}

// rate runs one on n workers at once and returns how many per second.
func rate(n int, d time.Duration, one func(worker int)) float64 {
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	end := time.Now().Add(d)
	for w := range n {
		wg.Go(func() {
			count := 0
			for time.Now().Before(end) {
				one(w)
				count++
			}
			mu.Lock()
			total += count
			mu.Unlock()
		})
	}
	wg.Wait()
	return float64(total) / d.Seconds()
}

func TestExecParallel(t *testing.T) {
	const n = 16
	d := short(400*time.Millisecond, 2*time.Second)
	arm := func(s execServer) func() float64 {
		var probes [n]*probe
		for i := range probes {
			probes[i] = dialProbe(t, s.url, false)
		}
		return func() float64 { return rate(n, d, func(w int) { probes[w].oneShot(trueArgv) }) }
	}
	ours := arm(launch(t, tholeServer(t)))
	Case{Name: "exec: 16 connections, one shots", Unit: "/s", Peer: original, Promise: 3, Loose: 1.5, AtLeast: true,
		Ours: ours, Theirs: arm(launch(t, codexServer(t)))}.Run(t)
	Case{Name: "exec: 16 connections, one shots, to the floor", Unit: "/s", Peer: floor, Promise: 0.8, Loose: 0.5, AtLeast: true,
		Ours: ours, Theirs: func() float64 { return rate(n, d, func(int) { floorOnce(t) }) }}.Run(t)
}

func TestExecThroughput(t *testing.T) {
	size := short(20_000_000, 200_000_000)
	argv := fmt.Sprintf(`["/usr/bin/head","-c","%d","/dev/zero"]`, size)
	ours, real := launch(t, tholeServer(t)), launch(t, codexServer(t))
	for _, tty := range []bool{false, true} {
		arm := func(s execServer) func() float64 {
			p := dialProbe(t, s.url, false)
			return func() float64 {
				began := time.Now()
				if got := p.drain(argv, tty) * 3 / 4; got < size {
					t.Errorf("%d bytes of %d", got, size)
				}
				return float64(size) / 1e6 / time.Since(began).Seconds()
			}
		}
		name := "exec: output through pipes"
		if tty {
			name = "exec: output through a terminal"
		}
		Case{Name: name, Unit: "MB/s", Peer: original, Promise: 1.3, Loose: 0.8, AtLeast: true, Ours: arm(ours), Theirs: arm(real)}.Run(t)
	}
}

func TestExecMemory(t *testing.T) {
	for _, n := range short([]int{0, 50}, []int{0, 100, 500}) {
		arm := func(argv []string) func() float64 {
			s := launch(t, argv)
			p := dialProbe(t, s.url, false)
			for range n {
				p.start(`["/bin/sleep","600"]`, false)
				p.next()
			}
			return func() float64 { return float64(rss(t, s.pid)) / 1e6 }
		}
		Case{Name: fmt.Sprintf("exec: resident memory with %d processes", n), Unit: "MB", Peer: original, Promise: 0.25, Loose: 0.5,
			Ours: arm(tholeServer(t)), Theirs: arm(codexServer(t))}.Run(t)
	}
}

func TestExecColdStart(t *testing.T) {
	cold := func(argv []string) func() float64 {
		return func() float64 {
			began := time.Now()
			p := dialProbe(t, launch(t, argv).url, false)
			d := time.Since(began)
			_ = p.ws.CloseNow()
			return float64(d) / float64(time.Millisecond)
		}
	}
	Case{Name: "exec: cold start to the first answer", Unit: "ms", Peer: original, Promise: 0.5, Loose: 1,
		Ours: cold(tholeServer(t)), Theirs: cold(codexServer(t))}.Run(t)
}
