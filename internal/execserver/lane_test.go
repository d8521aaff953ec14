package execserver

import "testing"

// What waits after a request that takes long is bounded, in number and in bytes.
func TestLaneIsBounded(t *testing.T) {
	for name, size := range map[string]int{"many": 0, "large": 1 << 20} {
		l := lane{width: 1}
		release, begun := make(chan struct{}), make(chan struct{})
		l.do(laneBytes+1, func() { close(begun); <-release })
		<-begun
		ran, taken := 0, 0
		for range laneRequests + 10 {
			if l.after(size, func() { ran++ }) {
				taken++
			}
		}
		want := laneRequests
		if size > 0 {
			want = laneBytes / size
		}
		if taken != want {
			t.Errorf("%s: %d of %d taken, want %d", name, taken, laneRequests+10, want)
		}
		done := make(chan struct{})
		close(release)
		for !l.do(0, func() { close(done) }) { // the lane moves on
		}
		<-done
		if ran != taken {
			t.Errorf("%s: %d of %d ran", name, ran, taken)
		}
	}
}
