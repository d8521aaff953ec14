package thread_test

import (
	"fmt"
	"slices"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/store/storetest"
	"github.com/tholehq/thole/internal/thread"
)

// Pinned threads come before all others, in every order and page size, forwards and
// back, and a pin does not make a thread newer.
func TestPinnedThreadsComeFirst(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T, open storetest.Open) {
		b := newBench(t, open(t), nil)
		var ids []thole.ThreadID
		for i := range 7 {
			ids = append(ids, b.create(thread.Create{Name: fmt.Sprint(i)}).ID)
		}
		yes, no := true, false
		for _, i := range []int{1, 4, 5} {
			was, err := b.Get(bg, me, ids[i])
			if err != nil {
				t.Fatal(err)
			}
			th, err := b.Update(bg, me, ids[i], thread.Update{Pinned: &yes})
			if err != nil || !th.Pinned || !th.Updated.Equal(was.Updated) {
				t.Fatalf("pinned: %+v, %v; it was of %s", th, err, was.Updated)
			}
		}
		if _, err := b.Update(bg, me, ids[5], thread.Update{Pinned: &no}); err != nil {
			t.Fatal(err)
		}
		pick := func(order ...int) (out []thole.ThreadID) {
			for _, i := range order {
				out = append(out, ids[i])
			}
			return out
		}
		for _, c := range []struct {
			f    thread.Filter
			want []thole.ThreadID
		}{
			{thread.Filter{PinnedFirst: true, PageParams: thread.PageParams{Desc: true}}, pick(4, 1, 6, 5, 3, 2, 0)},
			{thread.Filter{PinnedFirst: true, Sort: "created", PageParams: thread.PageParams{Desc: true}}, pick(4, 1, 6, 5, 3, 2, 0)},
			{thread.Filter{PinnedFirst: true, Sort: "created"}, pick(1, 4, 0, 2, 3, 5, 6)},
			{thread.Filter{PageParams: thread.PageParams{Desc: true}}, pick(6, 5, 4, 3, 2, 1, 0)},
		} {
			for limit := 1; limit <= 8; limit++ {
				f := c.f
				f.Limit = limit
				var forth, back []thole.ThreadID
				for {
					page, err := b.List(bg, me, f)
					if err != nil {
						t.Fatal(err)
					}
					var of []thole.ThreadID
					for _, th := range page.Items {
						of = append(of, th.ID)
					}
					forth = append(forth, of...)
					if page.Next != "" {
						f.Cursor = page.Next
						continue
					}
					back = of
					for f.Cursor = page.Back; f.Cursor != ""; f.Cursor = page.Back {
						if page, err = b.List(bg, me, f); err != nil {
							t.Fatal(err)
						}
						of = nil
						for _, th := range page.Items {
							of = append(of, th.ID)
						}
						back = append(of, back...)
					}
					break
				}
				if !slices.Equal(forth, c.want) || !slices.Equal(back, c.want) {
					t.Errorf("%+v: forwards %v, back %v, want %v", f, forth, back, c.want)
				}
			}
		}
	})
}
