package appserver_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/tholetest"
	"github.com/tholehq/thole/protocol/app"
)

// A client that leaves does not wait, and leaves nothing behind.
func TestLeaving(t *testing.T) {
	rig := tholetest.New(t)
	addr := rig.Listen("unix://"+filepath.Join(t.TempDir(), "s.sock"), "")
	c, err := appclient.Dial(context.Background(), addr, appclient.Options{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.StartThread(context.Background(), app.ThreadStartParams{}); err != nil {
		t.Fatal(err)
	}
	from := time.Now()
	c.Close()
	if d := time.Since(from); d > 500*time.Millisecond {
		t.Errorf("leaving took %s", d)
	}
}
