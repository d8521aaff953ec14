package cli

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/modelsim"
)

func newDemoModel(env *Env) *cobra.Command {
	var listen, file string
	cmd := &cobra.Command{
		Use:   "demo-model",
		Short: "Run a scripted model that agent CLIs can use without a network or a key",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts := modelsim.Options{Demo: true, Pace: 15 * time.Millisecond}
			if file != "" {
				data, err := os.ReadFile(file)
				if err == nil {
					opts.Scripts, err = modelsim.ParseScripts(data)
				}
				if err != nil {
					return (&thole.Error{Code: thole.CodeInvalid, Err: fmt.Errorf("read --script: %w", err)}).WithHint("see the format in the documentation of internal/modelsim")
				}
			}
			if err := config.CheckAddress(listen); err != nil {
				return thole.Errorf(thole.CodeInvalid, "--listen %w", err).WithHint("use --listen 127.0.0.1:0")
			}
			ln, err := net.Listen("tcp", listen)
			if err != nil {
				return (&thole.Error{Code: thole.CodeUnavailable, Err: err}).WithHint("choose another address with --listen, or port 0 for a free one")
			}
			if addr, ok := ln.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
				_ = ln.Close()
				return (&thole.Error{Code: thole.CodeInvalid, Err: fmt.Errorf("the scripted model asks for no key, so it listens on loopback only, not on %s", listen)}).WithHint("use --listen 127.0.0.1:0")
			}
			url := "http://" + ln.Addr().String()
			if err := env.print(map[string]string{"url": url}, func(w io.Writer) { putln(w, "scripted model on "+url) }); err != nil {
				return err
			}
			sim := modelsim.New(opts)
			done := make(chan error, 1)
			go func() { done <- sim.Serve(ln) }()
			select {
			case err := <-done:
				return err
			case <-cmd.Context().Done():
				_ = sim.Close()
				return <-done
			}
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "loopback address to listen on")
	cmd.Flags().StringVar(&file, "script", "", "file of named scripts")
	return cmd
}
