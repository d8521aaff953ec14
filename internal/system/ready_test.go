package system

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/wire"
)

// A user who reads the page's address may ask the home at once: `thole login`, or another
// `thole up` that must find this one.
func TestThePageIsToldWhenTheHomeAnswers(t *testing.T) {
	home, err := os.MkdirTemp("", "tr") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(home) }()
	cfg, err := config.Load(home, func(string) string { return "" }, map[string]string{"http.listen": "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var st wire.Status
	asked := make(chan error, 1)
	_, err = Run(ctx, Options{Config: cfg, Role: "up", Demo: true, Web: func(Page) {
		asked <- (&daemonclient.Client{Home: home, NoStart: true}).Call(ctx, wire.DaemonStatus, struct{}{}, &st)
		cancel()
	}})
	if e := <-asked; e != nil || st.Role != "up" {
		t.Errorf("asked when the page was told: %v, %+v (ended: %v)", e, st, err)
	}
}
