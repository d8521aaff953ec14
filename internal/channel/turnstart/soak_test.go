package turnstart_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSoakCuts repeats the cut runs with many seeds and writes the table. It runs
// with THOLE_SOAK set; THOLE_SOAK_RUNS changes the number of runs per mode.
func TestSoakCuts(t *testing.T) {
	if os.Getenv("THOLE_SOAK") == "" {
		t.Skip("runs in make soak")
	}
	runs := 200
	if n, err := strconv.Atoi(os.Getenv("THOLE_SOAK_RUNS")); err == nil {
		runs = n
	}
	const firstSeed = 1000
	began := time.Now()
	var table, reasons strings.Builder
	for _, mode := range []struct {
		name string
		up   bool
	}{{"request cut", true}, {"answer cut", false}} {
		c := newCodex(t)
		var cuts, delivered, held, lost, doubled int
		for i := range runs {
			seed := uint64(firstSeed + i)
			t.Run(fmt.Sprint(mode.name, " ", seed), func(t *testing.T) {
				o := cutRun(t, c, mode.up, seed)
				if o.made {
					cuts++
				}
				switch {
				case o.turns > 1:
					doubled++
				case o.delivered && o.turns == 0:
					lost++
				case o.delivered:
					delivered++
				case o.held:
					held++
					fmt.Fprintf(&reasons, "- %s, seed %d: %s\n", mode.name, seed, lastProof(o.story))
				default:
					lost++
				}
				if o.turns > 1 || o.delivered != (o.turns == 1) && !o.held {
					t.Errorf("%+v", o)
				}
			})
		}
		fmt.Fprintf(&table, "| %s | %d–%d | %d | %d | %d | %d | %d | %d |\n", mode.name, firstSeed, firstSeed+runs-1, runs, cuts, delivered, held, lost, doubled)
		if lost+doubled > 0 || delivered*100 < runs*95 {
			t.Errorf("%s: %d delivered, %d held, %d lost, %d doubled of %d", mode.name, delivered, held, lost, doubled, runs)
		}
	}
	if reasons.Len() == 0 {
		reasons.WriteString("None.\n")
	}
	page := "# Deliveries over cut connections\n\n" +
		"Written by `THOLE_SOAK=1 go test ./internal/channel/turnstart -run TestSoakCuts -timeout 60m`.\n\n" +
		"Each run delivers one result into an idle thread of a real Codex app-server (scripted model) through a proxy. Once the\n" +
		"attempt is durably `accept_pending`, the proxy kills the connection after a number of bytes that the seed chooses:\n" +
		"0–1499 towards the server, or 0–7999 from it. So the cut falls before, inside and after the request, its answer and\n" +
		"what follows. *Cut* counts the runs in which that many bytes were sent at all.\n\n" +
		"| mode | seeds | runs | cut | delivered | held | lost | doubled |\n|---|---|---|---|---|---|---|---|\n" + table.String() +
		"\nHeld runs and the proof that was missing:\n\n" + reasons.String() +
		fmt.Sprintf("\nLast run: %s, %s.\n", began.UTC().Format("2006-01-02"), time.Since(began).Round(time.Second))
	if err := os.WriteFile(filepath.Join("..", "..", "..", "docs", "delivery-faults.md"), []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}

// lastProof is the ledger row that held a batch.
func lastProof(story string) string {
	lines := strings.Split(strings.TrimSpace(story), "\n")
	return lines[len(lines)-1]
}
