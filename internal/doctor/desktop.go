package doctor

import "github.com/tholehq/thole/internal/config"

// checkDesktop says how little is known of the Desktop channel, which no machine can try by
// itself: the app's scheduler is the app's.
func checkDesktop(cfg *config.Config) Finding {
	if !cfg.Desktop.Enabled {
		return Finding{Part: "Codex Desktop", OK: true, Found: "off (desktop.enabled); never seen with a real app"}
	}
	return Finding{
		Part: "Codex Desktop", OK: true, Unknown: true,
		Found: "on, and never seen with a real app: nothing is armed before thole desktop installation-state repair says what you validated",
	}
}
