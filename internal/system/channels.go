package system

import (
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/channel"
	"github.com/tholehq/thole/internal/channel/ownthread"
	"github.com/tholehq/thole/internal/config"
	"github.com/tholehq/thole/internal/thread"
)

// newChannels makes the ways by which this process reaches threads.
func newChannels(cfg *config.Config, threads *thread.Machine) map[thole.Target]channel.Channel {
	return map[thole.Target]channel.Channel{
		thole.TargetThole: &ownthread.Channel{Threads: threads, Home: cfg.Home},
	}
}
