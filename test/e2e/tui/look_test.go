package tui

import (
	"context"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/internal/thread"
	"github.com/tholehq/thole/protocol/app"
)

// loaded is the id of the one thread that is no title helper.
func loaded(t *testing.T, rig *tholetest.Kit) string {
	t.Helper()
	page, err := rig.Threads.List(context.Background(), thole.LocalActor, thread.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Items) != 1 {
		t.Fatalf("%d threads, want one", len(page.Items))
	}
	return string(page.Items[0].ID)
}

// turnsOf reads a thread's turns through the contract.
func turnsOf(t *testing.T, rig *tholetest.Kit, id string) []app.Turn {
	t.Helper()
	c, err := appclient.Over(context.Background(), rig.Stream(), appclient.Options{Name: "look"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	full := app.ItemsFull
	page, err := c.Turns(context.Background(), app.TurnsListParams{ThreadID: id, ItemsView: &full})
	if err != nil {
		t.Fatal(err)
	}
	return page.Data
}
