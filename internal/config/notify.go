package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Notify says who is sent ends of turns and of questions, besides clients.
type Notify struct {
	Command       []string `toml:"command"` // program and arguments; no shell
	Webhook       Private  `toml:"webhook"`
	WebhookSecret Private  `toml:"webhook_secret"`
	Desktop       bool     `toml:"desktop"`
	On            []string `toml:"on"`
	Details       bool     `toml:"details"`
	MinSeconds    int      `toml:"min_seconds"`
}

// NotifyEvents are what notify.on may name.
var NotifyEvents = []string{"done", "failed", "ask"}

// Private is a value that nobody is shown: that it is set must be enough.
type Private string

// String implements fmt.Stringer.
func (p Private) String() string {
	if p == "" {
		return ""
	}
	return "(set)"
}

// GoString implements fmt.GoStringer.
func (p Private) GoString() string { return p.String() }

func (c *Config) checkNotify() error {
	n := c.Notify
	for _, name := range n.On {
		if !slices.Contains(NotifyEvents, name) {
			return c.bad("notify.on", "must name %s, not %q", strings.Join(NotifyEvents, ", "), name)
		}
	}
	if err := checkCommand(n.Command); err != nil {
		return c.bad("notify.command", "%s", err)
	}
	if u, err := url.Parse(string(n.Webhook)); n.Webhook != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "") {
		return c.bad("notify.webhook", "must be a URL that begins with https:// or http://") // it may hold a secret
	}
	if n.WebhookSecret != "" && n.Webhook == "" {
		return c.bad("notify.webhook_secret", "signs what notify.webhook gets, which is not set")
	}
	if n.MinSeconds < 0 {
		return c.bad("notify.min_seconds", "must not be negative")
	}
	return nil
}

// checkCommand wants a program that is the same one wherever its owner was started.
func checkCommand(argv []string) error {
	if len(argv) == 0 {
		return nil
	}
	if argv[0] == "" || strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]) {
		return fmt.Errorf("must begin with a program's name or its absolute path, not %q", argv[0])
	}
	for _, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			return errors.New("has an argument with a NUL character")
		}
	}
	return nil
}
