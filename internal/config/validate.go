package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/artifact"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/forge"
	"github.com/tholehq/thole/internal/provider/table"
)

// Validate checks every value and names the key of the first bad one.
func (c *Config) Validate() error {
	oneOf := func(key, v string, allowed ...string) error {
		for _, a := range allowed {
			if v == a {
				return nil
			}
		}
		return c.bad(key, "must be one of %s, not %q", strings.Join(allowed, ", "), v)
	}
	checks := []error{
		oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error"),
		oneOf("log.format", c.Log.Format, "auto", "text", "json"),
		oneOf("objects.kind", c.Objects.Kind, "dir", "s3"),
		oneOf("objects.style", c.Objects.Style, "auto", "path", "host"),
		oneOf("objects.credentials", c.Objects.Credentials, "auto", "static", "env", "web_identity", "iam"),
		oneOf("executor.kind", c.Executor.Kind, "local"),
		oneOf("executor.isolation", c.Executor.Isolation, "box", "none"),
		c.positive("executor.uid_base", c.Executor.UIDBase > 0),
		oneOf("egress.policy", c.Egress.Policy, "none", "gateway", "list", "open"),
		c.each("egress.names", c.Egress.Names, egress.CheckName),
		c.each("egress.private", c.Egress.Private, egress.CheckTarget),
		c.checkStore(),
		c.checkServer(),
		c.checkOIDC(),
		c.checkUpstreams(),
		c.each("executor.paths", c.Executor.Paths, checkPath),
		c.each("executor.path", c.Executor.Path, checkPathEntry),
		c.each("executor.env", c.Executor.Env, checkVariable),
		c.positive("executor.setup_timeout", c.Executor.SetupTimeout > 0),
		c.each("providers.hand_in_logins", c.Providers.HandInLogins, checkLogin),
		c.each("providers.hooks", c.Providers.Hooks, checkLogin),
		oneOf("executor.scope", c.Executor.Scope, "thread", "turn"),
		c.checkCoAuthor(),
		c.each("changes.forges", c.Changes.Forges, func(one string) error { _, _, err := Forge(one); return err }),
		oneOf("asks.input_policy", c.Asks.InputPolicy, "fail", "default", "wait"),
		oneOf("asks.approval_policy", c.Asks.ApprovalPolicy, ApprovalPolicies...),
		c.positive("asks.approval_timeout", c.Asks.ApprovalTimeout > 0),
		c.positive("executor.idle_stop", c.Executor.IdleStop > 0),
		c.positive("executor.remove_after", c.Executor.RemoveAfter > 0),
		c.positive("executor.sweep_every", c.Executor.SweepEvery > 0),
		c.positive("executor.starts_per_second", c.Executor.StartsPerSec > 0),
		c.positive("threads.keep_events", c.Threads.KeepEvents > 0),
		c.positive("turns.max_running", c.Turns.MaxRunning > 0),
		c.positive("turns.max_per_user", c.Turns.MaxPerUser > 0),
		c.positive("turns.timeout", c.Turns.Timeout > 0),
		c.positive("asks.input_timeout", c.Asks.InputTimeout > 0),
		c.checkNotify(),
		c.positive("delivery.max_jobs", c.Delivery.MaxJobs > 0),
		c.positive("delivery.max_bytes", c.Delivery.MaxBytes > 0),
		c.positive("delivery.message_bytes", c.Delivery.MessageBytes > 0),
		c.positive("delivery.observation_window", c.Delivery.ObservationWindow > 0),
	}
	for kind, rule := range c.Asks.Kinds() {
		if _, _, err := AskRule(rule); err != nil {
			checks = append(checks, c.bad("asks."+kind, "%s", err))
		}
	}
	if err := CheckAddress(c.HTTP.Listen); err != nil {
		checks = append(checks, c.bad("http.listen", "%s", err))
	}
	if (c.HTTP.TLSCert == "") != (c.HTTP.TLSKey == "") {
		checks = append(checks, c.bad("http.tls_cert", "and http.tls_key are needed together"))
	}
	if _, err := c.HTTP.Proxies(); err != nil {
		checks = append(checks, c.bad("http.trusted_proxies", "%s", err))
	}
	if u, err := url.Parse(c.HTTP.PublicURL); c.HTTP.PublicURL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.String() != u.Scheme+"://"+u.Host) {
		checks = append(checks, c.bad("http.public_url", "must be https://HOST, without a path, not %q", c.HTTP.PublicURL))
	}
	if f := c.Relay.TokensFile; f != "" && !filepath.IsAbs(f) {
		checks = append(checks, c.bad("relay.tokens_file", "must be an absolute path, not %q", f))
	}
	if c.Objects.Kind == "s3" && (c.Objects.Endpoint == "" || c.Objects.Bucket == "") {
		checks = append(checks, c.bad("objects.endpoint", "and objects.bucket are needed when objects.kind is s3"))
	}
	if c.Executor.UIDBase > 1<<31-1<<16 {
		checks = append(checks, c.bad("executor.uid_base", "must leave room for the users after it, not %d", c.Executor.UIDBase))
	}
	if c.Executor.OrphanTimeout < 30*time.Second {
		checks = append(checks, c.bad("executor.orphan_timeout", "must be at least 30s: who follows a turn asks every 10 s"))
	}
	if o := c.Objects; o.Kind == "s3" && ((o.AccessKey == "") != (o.SecretKeyFile == "") || o.Credentials == "static" && o.AccessKey == "") {
		checks = append(checks, c.bad("objects.access_key", "and objects.secret_key_file are needed together, and for objects.credentials = \"static\""))
	}
	if e := c.Executor; e.CPUs < 0 || e.MemoryMB < 0 || e.Pids < 0 || e.DiskMB < 0 || e.MaxLive < 0 {
		checks = append(checks, c.bad("executor.cpus", "executor.memory_mb, pids, disk_mb and max_live must not be negative; 0 is no limit"))
	}
	if c.Egress.CAFile != "" && !filepath.IsAbs(c.Egress.CAFile) {
		checks = append(checks, c.bad("egress.ca_file", "must be an absolute path, not %q", c.Egress.CAFile))
	}
	if c.Vault.KeyFile != "" && !filepath.IsAbs(c.Vault.KeyFile) {
		checks = append(checks, c.bad("vault.key_file", "must be an absolute path, not %q", c.Vault.KeyFile))
	}
	if c.Prices.File != "" && !filepath.IsAbs(c.Prices.File) {
		checks = append(checks, c.bad("prices.file", "must be an absolute path, not %q", c.Prices.File))
	}
	if c.Executor.SyncTimeout < time.Second {
		checks = append(checks, c.bad("executor.sync_timeout", "must be at least 1s"))
	}
	if c.Daemon.IdleExit < 0 {
		checks = append(checks, c.bad("daemon.idle_exit", "must not be negative; 0 is never"))
	}
	if least := artifact.DefaultRetention().PostClose; c.Delivery.Keep != 0 && c.Delivery.Keep < least {
		checks = append(checks, c.bad("delivery.keep", "must be at least %s, which is how long result files are kept; 0 is for ever", least))
	}
	for _, class := range c.Delivery.Steer {
		checks = append(checks, oneOf("delivery.steer", class, "read_only_low_risk"))
	}
	if c.Delivery.ObservationWindow <= c.Daemon.IdleExit {
		checks = append(checks, c.bad("delivery.observation_window", "must be longer than daemon.idle_exit (%s), or accepted results would go unobserved", c.Daemon.IdleExit))
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) each(key string, entries []string, check func(string) error) error {
	for _, s := range entries {
		if err := check(s); err != nil {
			return c.bad(key, "has an %s", err)
		}
	}
	return nil
}

// CheckAddress refuses what can never be listened on, which is not the same as a port that
// another program has.
func CheckAddress(listen string) error {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("must be HOST:PORT, not %q", listen)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("has an invalid port %q: it is a number from 0, any free one, to 65535", port)
	}
	return nil
}

func checkPath(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return fmt.Errorf("entry that is no absolute path: %q", path)
	}
	return nil
}

func checkLogin(name string) error {
	if table.Of(name).Login.File == "" {
		return fmt.Errorf("agent %q that has no login", name)
	}
	return nil
}

func (c *Config) positive(key string, ok bool) error {
	if ok {
		return nil
	}
	return c.bad(key, "must be greater than zero")
}

func (c *Config) bad(key, format string, args ...any) error {
	hint := "change it there, or remove it"
	standard := Default()
	for _, e := range standard.Entries() {
		if e.Key == key && e.Value != "" {
			hint += ": then it is " + e.Value
		}
	}
	return thole.Errorf(thole.CodeInvalid, "config key %s (from %s) %s", key, c.Origin(key), fmt.Sprintf(format, args...)).WithHint("%s", hint)
}

// Forge reads one of changes.forges.
func Forge(text string) (host string, at forge.Host, err error) {
	host, rest, ok := strings.Cut(text, "=")
	if !ok || host == "" || strings.ContainsAny(host, "/ ") {
		return "", at, fmt.Errorf("entry that is not HOST=KIND: %q", text)
	}
	at, err = forge.ParseHost(rest)
	return strings.ToLower(host), at, err
}

var person = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^<>\pC]+ <[^<>\pC ]+>$`) })

func (c *Config) checkCoAuthor() error {
	if who := c.Changes.CoAuthor; who != "" && !person().MatchString(who) {
		return c.bad("changes.co_author", "must be NAME <ADDRESS>, not %q", who)
	}
	return nil
}
