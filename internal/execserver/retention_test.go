package execserver

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/tholehq/thole/protocol/exec"
)

// TestRetentionModel compares the ring with a plain list.
func TestRetentionModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r retention
		var model []exec.Chunk
		size := 0
		steps := rapid.IntRange(1, 60).Draw(t, "steps")
		for seq := uint64(1); seq <= uint64(steps); seq++ {
			n := rapid.SampledFrom([]int{0, 1, 7, 500, 4096, 46080, 300_000, exec.RetainedBytes - 1, exec.RetainedBytes}).Draw(t, "size")
			chunk := bytes.Repeat([]byte{byte(seq)}, n)
			r.add(seq, stream(seq%3), chunk)
			model = append(model, exec.Chunk{Seq: seq, Stream: stream(seq % 3).name(), Chunk: chunk})
			for size += n; size > exec.RetainedBytes; model = model[1:] {
				size -= len(model[0].Chunk)
			}
			after := rapid.Uint64Range(0, seq).Draw(t, "after")
			compare(t, r.after(after, nil), model, after, nil)
			budget := rapid.Uint64Range(0, 100_000).Draw(t, "budget")
			compare(t, r.after(after, &budget), model, after, &budget)
			if len(r.text()) != size || len(r.data) > exec.RetainedBytes {
				t.Fatalf("%d bytes of text in a ring of %d, want %d", len(r.text()), len(r.data), size)
			}
		}
	})
}

func compare(t *rapid.T, got, model []exec.Chunk, after uint64, budget *uint64) {
	var want []exec.Chunk
	var total uint64
	for _, c := range model {
		if c.Seq <= after {
			continue
		}
		if budget != nil && len(want) > 0 && (total >= *budget || total+uint64(len(c.Chunk)) > *budget) {
			break
		}
		want = append(want, c)
		total += uint64(len(c.Chunk))
		if budget != nil && total >= *budget {
			break
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d chunks after %d, want %d", len(got), after, len(want))
	}
	for i := range got {
		if got[i].Seq != want[i].Seq || got[i].Stream != want[i].Stream || !bytes.Equal(got[i].Chunk, want[i].Chunk) {
			t.Fatalf("chunk %d differs: seq %d, want %d", i, got[i].Seq, want[i].Seq)
		}
	}
}

func TestRetentionCountsChunks(t *testing.T) {
	var r retention
	for seq := uint64(1); seq <= exec.RetainedChunks+10; seq++ {
		r.add(seq, stdout, []byte{1})
	}
	got := r.after(0, nil)
	if len(got) != exec.RetainedChunks || got[0].Seq != 11 {
		t.Fatalf("%d chunks from %d", len(got), got[0].Seq)
	}
}
