package ringlog_test

import (
	"bytes"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tholehq/thole/internal/ringlog"
)

// TestModel compares with a plain slice that is trimmed by the stated rule.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxBytes, maxChunks := rapid.IntRange(1, 40).Draw(t, "bytes"), rapid.IntRange(1, 12).Draw(t, "chunks")
		log := ringlog.New(maxBytes, maxChunks)
		var all []ringlog.Chunk
		next := uint64(1)
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				data := rapid.SliceOfN(rapid.Byte(), 0, 15).Draw(t, "data")
				want := append([]byte{}, data...)
				if got := log.Append(uint8(next), data); got != next {
					t.Fatalf("seq %d, want %d", got, next)
				}
				clear(data) // the log must have its own copy
				all = append(all, ringlog.Chunk{Seq: next, Tag: uint8(next), Data: want})
				next++
				for size(all) > maxBytes && len(all) > 1 || len(all) > maxChunks {
					all = all[1:]
				}
			},
			"mark": func(t *rapid.T) {
				if got := log.Mark(); got != next {
					t.Fatalf("seq %d, want %d", got, next)
				}
				next++
			},
			"read": func(t *rapid.T) {
				after, limit := rapid.Uint64Range(0, next+2).Draw(t, "after"), rapid.IntRange(0, 50).Draw(t, "limit")
				var want []ringlog.Chunk
				for _, c := range all {
					if c.Seq <= after {
						continue
					}
					if limit > 0 && len(want) > 0 && size(want)+len(c.Data) > limit {
						break
					}
					want = append(want, c)
				}
				v := log.Read(after, limit)
				if v.Next != next || len(v.Chunks) != len(want) {
					t.Fatalf("next %d chunks %d, want %d %d", v.Next, len(v.Chunks), next, len(want))
				}
				for i, c := range v.Chunks {
					if c.Seq != want[i].Seq || c.Tag != want[i].Tag || !bytes.Equal(c.Data, want[i].Data) {
						t.Fatalf("chunk %d is %v, want %v", i, c, want[i])
					}
				}
				if len(all) > 0 && v.First != all[0].Seq || len(all) == 0 && v.First != next {
					t.Fatalf("first %d", v.First)
				}
			},
			"": func(t *rapid.T) {
				if b, n := log.Size(); b != size(all) || n != len(all) {
					t.Fatalf("size %d %d, want %d %d", b, n, size(all), len(all))
				}
			},
		})
	})
}

func size(list []ringlog.Chunk) (n int) {
	for _, c := range list {
		n += len(c.Data)
	}
	return n
}

// TestFollow reads everything a concurrent writer prints, waiting on Changed.
func TestFollow(t *testing.T) {
	log := ringlog.New(1<<20, 50000)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 2000 {
			log.Append(1, []byte("x"))
		}
		log.Mark()
		log.Close()
	})
	var after uint64
	got := 0
	for {
		v := log.Read(after, 100)
		for _, c := range v.Chunks {
			if c.Seq != after+1 {
				t.Fatalf("seq %d after %d", c.Seq, after)
			}
			after = c.Seq
			got++
		}
		if len(v.Chunks) == 0 {
			if v.Closed {
				break
			}
			<-v.Changed
		}
	}
	wg.Wait()
	if v := log.Read(0, 0); got != 2000 || v.Next != 2002 {
		t.Fatalf("read %d, next %d", got, v.Next)
	}
	<-log.Read(0, 0).Changed // closed for good
	if log.Append(1, nil) != 0 || log.Mark() != 0 {
		t.Fatal("a closed log took more")
	}
	log.Close()
}
