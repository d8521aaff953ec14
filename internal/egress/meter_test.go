package egress

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/testkit/poll"
)

func TestMeterIsBounded(t *testing.T) {
	var m meter
	for i := range 10 * MaxTotals {
		for _, v := range []Verdict{Allowed, Refused} {
			m.add(Connection{Host: fmt.Sprintf("h%05d", i), Port: 443, Verdict: v, Why: "why"}, 1, 2, 3)
		}
	}
	all := m.list(false)
	if len(all) > MaxTotals+3 {
		t.Errorf("%d totals", len(all))
	}
	var sum Total
	for _, one := range all {
		sum.Connections += one.Connections
		sum.Sent += one.Sent
		sum.Received += one.Received
	}
	if n := int64(20 * MaxTotals); sum.Connections != n || sum.Sent != 2*n || sum.Received != 3*n {
		t.Errorf("sums %+v", sum)
	}
	if all[0].Host != "" || all[0].Why != "" {
		t.Errorf("the rest is %+v", all[0])
	}
}

// A connection that lasts is counted while it lasts, in each take what it moved since the last.
func TestTakeDuringConnection(t *testing.T) {
	w := newWorld(t)
	target := serveTCP(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
	p, proxy := w.proxy(Config{Policy: Open, Dial: dialTo(target)})
	p.tick = time.Millisecond
	c, r := tunnels["connect"](t, proxy)
	for i, size := range []int64{1000, 500} {
		_, _ = c.Write(make([]byte, size))
		if _, err := io.CopyN(io.Discard, r, size); err != nil {
			t.Fatal(err)
		}
		poll.Until(t, "the bytes", func() bool { all := p.Totals(); return len(all) == 1 && all[0].Sent == size && all[0].Received == size })
		if all := p.Take(); all[0].Connections != int64(1-i) {
			t.Errorf("take %d: %+v", i, all)
		}
		if all := p.Totals(); len(all) != 0 {
			t.Errorf("after take %d: %+v", i, all)
		}
	}
}
