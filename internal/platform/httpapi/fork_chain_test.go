package httpapi_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
)

// TestForkOfForks: the seventeenth fork in a row lists the runs of all before it and
// its own, in order, however small the pages are.
func TestForkOfForks(t *testing.T) {
	g := newRig(t)
	id := g.me.session(obj{"execution_profile": "full"})
	g.me.answered(id, "sim: say 0")
	want := []string{"sim: say 0"}
	for n := 1; n <= 17; n++ {
		var fork obj
		g.me.call(201, "POST", "/sessions/"+id+"/fork", obj{}, &fork)
		id = fork["id"].(string)
		text := fmt.Sprintf("sim: say %d", n)
		g.me.answered(id, text)
		want = append(want, text)
	}
	for _, order := range []string{"asc", "desc"} {
		for _, limit := range []int{1, 4, 200} {
			var got []string
			seen := map[any]bool{}
			for cursor := ""; ; {
				var page obj
				g.me.call(200, "GET", fmt.Sprintf("/sessions/%s/runs?order=%s&limit=%d&cursor=%s", id, order, limit, url.QueryEscape(cursor)), nil, &page)
				for _, one := range items(page) {
					run := one.(obj)
					if seen[run["id"]] {
						t.Fatalf("%s %d: run %v is listed twice", order, limit, run["id"])
					}
					seen[run["id"]] = true
					got = append(got, run["input"].([]any)[0].(obj)["text"].(string))
				}
				if len(items(page)) > limit {
					t.Fatalf("%s %d: a page of %d", order, limit, len(items(page)))
				}
				next, more := page["next"].(string)
				if !more {
					break
				}
				cursor = next
			}
			if order == "desc" {
				slices.Reverse(got)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, pages of %d: %q", order, limit, got)
			}
		}
	}
}
