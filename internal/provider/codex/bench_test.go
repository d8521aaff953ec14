package codex

import (
	"testing"

	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
)

func BenchmarkDelta(b *testing.B) {
	line := []byte(`{"method":"item/agentMessage/delta","params":{"threadId":"01a1dd41-83b5-7893-b6e4-a02af3b7c330","turnId":"01a1dd41-83d5-7f11-a9cc-3ea0efae2627","itemId":"msg_sim86e66c824ecd3492","delta":"word "},"emittedAtMs":1794713420868}`)
	var n int
	em := provider.NewEmitter(testTurn, func(event.Event) { n++ })
	d := newDecoder(em, "01a1dd41-83b5-7893-b6e4-a02af3b7c330", "/workspace")
	d.turn = "01a1dd41-83d5-7f11-a9cc-3ea0efae2627"
	em.Start(event.Item{ID: em.ItemID("msg_sim86e66c824ecd3492"), Kind: event.ItemMessage})
	b.ReportAllocs()
	for b.Loop() {
		if !d.delta(line) {
			b.Fatal("not taken for a delta")
		}
	}
}
