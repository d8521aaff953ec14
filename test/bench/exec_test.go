//go:build linux

package bench

import (
	"fmt"
	"math"
	osexec "os/exec"
	"runtime"
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

// inTurns times two things one after the other, n times a round, so that both
// meet the same machine. Whichever half is asked for first does the round.
func inTurns(n int, q float64, ours, theirs func()) (a, b func() float64) {
	ours() // warm up
	theirs()
	var got [2]float64
	var have [2]bool
	half := func(i int) func() float64 {
		return func() float64 {
			if !have[i] {
				got, have = round(n, q, ours, theirs), [2]bool{true, true}
			}
			have[i] = false
			return got[i]
		}
	}
	return half(0), half(1)
}

// round returns the same quantile of both, in milliseconds.
func round(n int, q float64, both ...func()) (at [2]float64) {
	var d [2][]float64
	for range n {
		for i, one := range both {
			began := time.Now()
			one()
			d[i] = append(d[i], float64(time.Since(began))/float64(time.Millisecond))
		}
	}
	for i := range d {
		slices.Sort(d[i])
		at[i] = d[i][min(n-1, int(q*float64(n)))]
	}
	return at
}

func TestExecOneShot(t *testing.T) {
	ours, real := launch(t, tholeServer(t)), launch(t, codexServer(t))
	n := short(20, 100)
	shot := func(s execServer, ack bool) func() {
		p := dialProbe(t, s.url, ack)
		return func() { p.oneShot(trueArgv) }
	}
	bare := func() { floorOnce(t) }
	const note = "/usr/bin/true, from sending process/start to process/closed, one at a time over loopback, in turns with the peer. " +
		"Ours passes through two more processes than the floor (client and server wake each other four times), so other work on the CPUs counts double against it"
	const bounded = note + ". A bare fork, exec and wait takes 1.5 to 2.3 ms on this machine: the promised part of the original's time would be the floor itself"
	for _, c := range []struct {
		name, peer     string
		q              float64
		promise, loose float64
		ours, theirs   func()
	}{
		{"exec: one shot, median, to the floor", floor, 0.5, 1.3, 2.5, shot(ours, false), bare},
		{"exec: one shot, 95th percentile, to the floor", floor, 0.95, 2, 5, shot(ours, false), bare},
		{"exec: one shot, median, TCP_QUICKACK forced for both", original, 0.5, 1.0 / 5, 0.5, shot(ours, true), shot(real, true)},
		{"exec: one shot, median, as it ships", original, 0.5, 1.0 / 30, 0.15, shot(ours, false), shot(real, false)},
	} {
		a, b := inTurns(n, c.q, c.ours, c.theirs)
		why := note
		if c.peer == original {
			why = bounded
		}
		Case{Name: c.name, Unit: "ms", Peer: c.peer, Promise: c.promise, Loose: c.loose, Note: why, Ours: a, Theirs: b}.Run(t)
	}
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
		Ours: ours, Theirs: func() float64 { return rate(n, d, func(int) { floorOnce(t) }) },
		Note: "with every CPU busy the rate is what a run costs in all: client and server share the CPUs with the children, the floor has neither"}.Run(t)
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
		name, promise, loose := "exec: output through pipes", 1.3, 0.8
		if tty { // in pieces of 4 KiB; rounds of both spread from a third to three times
			name, promise, loose = "exec: output through a terminal", 0.9, 0.25
		}
		Case{Name: name, Unit: "MB/s", Peer: original, Promise: promise, Loose: loose, AtLeast: true, Ours: arm(ours), Theirs: arm(real),
			Note: "200 MB of `head -c` to process/closed; the client counts bytes and decodes nothing. Writer, server and client want three CPUs: with fewer, or with other work, all rounds spread widely"}.Run(t)
	}
}

// TestExecSmallWrites: a program that writes little at a time wakes the server for each write
// when the server keeps up. With other work on the CPUs the slowest round counts.
func TestExecSmallWrites(t *testing.T) {
	if !Long() {
		t.Skip("keeps every CPU busy, beside other tests too; THOLE_BENCH=1")
	}
	const count, rounds = 50_000, 5
	argv := fmt.Sprintf(`["/usr/bin/dd","if=/dev/zero","bs=2048","count=%d","status=none"]`, count)
	ours, real := launch(t, tholeServer(t)), launch(t, codexServer(t))
	for range runtime.NumCPU() {
		busy := osexec.Command("/bin/sh", "-c", "while :; do :; done")
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = busy.Process.Kill()
			_ = busy.Wait()
		})
	}
	arm := func(s execServer) func() float64 {
		p := dialProbe(t, s.url, false)
		return func() float64 {
			slowest := math.Inf(1)
			for range rounds {
				began := time.Now()
				if got := p.drain(argv, false) * 3 / 4; got < count*2048 {
					t.Errorf("%d bytes of %d", got, count*2048)
				}
				slowest = min(slowest, float64(count*2048)/1e6/time.Since(began).Seconds())
			}
			return slowest
		}
	}
	Case{Name: "exec: writes of 2 KiB through a pipe with busy CPUs, slowest of 5", Unit: "MB/s", Peer: original, Promise: 1, Loose: 0.2, AtLeast: true, Ours: arm(ours), Theirs: arm(real),
		Note: "100 MB by dd to process/closed, with one busy loop for each CPU"}.Run(t)
}

func TestExecMemory(t *testing.T) {
	for _, n := range short([]int{0, 50}, []int{0, 100, 500}) {
		arm := func(argv []string) func() float64 {
			s := launch(t, forgotten(t, argv))
			p := dialProbe(t, s.url, false)
			for range n {
				p.start(`["/bin/sleep","600"]`, false)
				p.next()
			}
			return func() float64 { return float64(rss(t, s.pid)) / 1e6 }
		}
		Case{Name: fmt.Sprintf("exec: resident memory with %d processes", n), Unit: "MB", Peer: original, Promise: 0.25, Loose: 0.6,
			Note: "VmRSS of the server alone. Nine tenths of ours are pages of the program's file, which all its processes share: the libraries for S3, metrics and traces touch them when they initialise themselves. 3 MiB are its own.",
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
