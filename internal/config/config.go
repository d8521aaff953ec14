// Package config holds the program's settings: one struct, four layers, defaults
// < file < environment < flags. It knows every key and where each value came
// from; it validates and refuses unknown keys by name. It opens nothing.
package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/egress"
	"github.com/tholehq/thole/internal/forge"
	"github.com/tholehq/thole/internal/provider/table"
)

// Config is every setting. A field's key is the path of its toml names,
// `http.listen`; its variable is THOLE_HTTP_LISTEN.
type Config struct {
	Home      string    `toml:"-"`
	Log       Log       `toml:"log"`
	HTTP      HTTP      `toml:"http"`
	Objects   Objects   `toml:"objects"`
	Executor  Executor  `toml:"executor"`
	Egress    Egress    `toml:"egress"`
	Gateway   Gateway   `toml:"gateway"`
	Workspace Workspace `toml:"workspace"`
	Changes   Changes   `toml:"changes"`
	Threads   Threads   `toml:"threads"`
	Turns     Turns     `toml:"turns"`
	Asks      Asks      `toml:"asks"`
	Agents    Agents    `toml:"agents"`
	Daemon    Daemon    `toml:"daemon"`
	Delivery  Delivery  `toml:"delivery"`
	Prices    Prices    `toml:"prices"`
	Providers Providers `toml:"providers"`
	Vault     Vault     `toml:"vault"`

	origin map[string]string
}

// Log says how the program logs.
type Log struct {
	Level  string `toml:"level"`  // debug, info, warn, error
	Format string `toml:"format"` // auto, text, json
}

// HTTP is the web and REST listener of up and serve.
type HTTP struct {
	Listen       string   `toml:"listen"`
	AllowedHosts []string `toml:"allowed_hosts"`
	PublicURL    string   `toml:"public_url"` // of a proxy in front
	TLSCert      string   `toml:"tls_cert"`
	TLSKey       string   `toml:"tls_key"`
}

// Objects says where workspaces and files live.
type Objects struct {
	Kind          string `toml:"kind"` // dir, s3
	Endpoint      string `toml:"endpoint"`
	Bucket        string `toml:"bucket"`
	Region        string `toml:"region"`
	Style         string `toml:"style"`       // auto, path, host
	Credentials   string `toml:"credentials"` // auto, static, env, web_identity, iam
	CredentialsAt string `toml:"credentials_endpoint"`
	AccessKey     string `toml:"access_key"`
	SecretKeyFile string `toml:"secret_key_file"`
}

// Executor says where turns run and how long an idle executor is kept.
type Executor struct {
	Kind        string        `toml:"kind"`      // local
	Isolation   string        `toml:"isolation"` // box, none
	Bubblewrap  string        `toml:"bubblewrap" retired:"isolation"`
	UIDBase     int           `toml:"uid_base"` // where the server is root
	Paths       []string      `toml:"paths"`    // of this machine, shown to agents read-only
	Path        Path          `toml:"path"`     // where agents look for programs
	Env         []string      `toml:"env"`      // names of variables that agents get
	Scope       string        `toml:"scope"`    // thread, turn
	IdleStop    time.Duration `toml:"idle_stop"`
	RemoveAfter time.Duration `toml:"remove_after"`
	// OrphanTimeout is how long an executor outlives the last word of its owner.
	OrphanTimeout time.Duration `toml:"orphan_timeout"`
	SweepEvery    time.Duration `toml:"sweep_every"`
	StartsPerSec  float64       `toml:"starts_per_second"`
	// Cgroup is the control group below which executors are limited, named as in
	// /proc/self/cgroup; auto takes one that was delegated to thole, off none.
	Cgroup   string  `toml:"cgroup"`
	CPUs     float64 `toml:"cpus"`
	MemoryMB int     `toml:"memory_mb"`
	Pids     int     `toml:"pids"`
	DiskMB   int     `toml:"disk_mb"`
	// MaxLive is how many executors run at a time.
	MaxLive     int           `toml:"max_live"`
	SyncTimeout time.Duration `toml:"sync_timeout"`
	// SetupTimeout bounds the setup of a workspace.
	SetupTimeout time.Duration `toml:"setup_timeout"`
}

// Egress says what agents reach over the network.
type Egress struct {
	Policy  string   `toml:"policy"`  // none, gateway, list, open
	Names   []string `toml:"names"`   // of policy list
	Private []string `toml:"private"` // HOST:PORT of this machine or its network
	CAFile  string   `toml:"ca_file"` // certificates that agents trust besides the system's
}

// Workspace says what threads' files are made of.
type Workspace struct {
	Manifest string `toml:"manifest"` // file with the runtime manifest; built in without one
}

// Changes says how agents' work becomes commits.
type Changes struct {
	CoAuthor string `toml:"co_author"` // NAME <ADDRESS>, named in commits of uncommitted work
	// Forges are servers that are not known by their name: HOST=KIND, or HOST=KIND URL.
	Forges []string `toml:"forges"`
}

// Turns bounds running turns.
type Turns struct {
	MaxRunning int           `toml:"max_running"`
	MaxPerUser int           `toml:"max_per_user"`
	Timeout    time.Duration `toml:"timeout"`
}

// Threads says what is kept of threads.
type Threads struct {
	KeepEvents time.Duration `toml:"keep_events"`
}

// Agents says what agents have besides their own.
type Agents struct {
	MCP bool `toml:"mcp"` // the tool server of thole
}

// Asks is the policy for asks that nobody answers.
type Asks struct {
	InputTimeout    time.Duration `toml:"input_timeout"`
	InputPolicy     string        `toml:"input_policy"` // fail, default, wait
	DefaultReply    string        `toml:"default_reply"`
	ApprovalTimeout time.Duration `toml:"approval_timeout"`
	ApprovalPolicy  string        `toml:"approval_policy"` // fail, deny, cancel, wait
	// One kind of ask each: "DURATION POLICY" or "wait"; empty is as above.
	Command     string `toml:"command"`
	FileChange  string `toml:"file_change"`
	Permissions string `toml:"permissions"`
	Plan        string `toml:"plan"`
	Elicitation string `toml:"elicitation"`
	Tool        string `toml:"tool"`
	Auth        string `toml:"auth"`
}

// ApprovalPolicies are what may happen to an approval that nobody gives.
var ApprovalPolicies = []string{"fail", "deny", "cancel", "wait"}

// AskRule reads the policy of one kind of ask: how long it waits, and what happens
// then.
func AskRule(text string) (wait time.Duration, policy string, err error) {
	if text == "wait" {
		return 0, "wait", nil
	}
	duration, policy, _ := strings.Cut(text, " ")
	policy = strings.TrimSpace(policy)
	if wait, err = time.ParseDuration(duration); err != nil || wait <= 0 || policy == "wait" || !slices.Contains(ApprovalPolicies, policy) {
		return 0, "", errors.New(`must be "DURATION POLICY" with one of fail, deny, cancel, as in "8h deny", or "wait"`)
	}
	return wait, policy, nil
}

// Kinds are the rules of single kinds that were set, by the name of the kind.
func (a Asks) Kinds() map[string]string {
	kinds := map[string]string{"command": a.Command, "file_change": a.FileChange, "permissions": a.Permissions, "plan": a.Plan,
		"elicitation": a.Elicitation, "tool": a.Tool, "auth": a.Auth}
	maps.DeleteFunc(kinds, func(_, rule string) bool { return rule == "" })
	return kinds
}

// Daemon is the on-demand background process.
type Daemon struct {
	IdleExit time.Duration `toml:"idle_exit"`
}

// Prices say what tokens cost.
type Prices struct {
	File string `toml:"file"` // replaces the built-in table; prices.toml of the home without one
}

// Delivery bounds how results reach threads.
type Delivery struct {
	MaxJobs           int           `toml:"max_jobs"`
	MaxBytes          int64         `toml:"max_bytes"`
	WaitWindow        time.Duration `toml:"wait_window"`
	MinInterval       time.Duration `toml:"min_interval"`
	ObservationWindow time.Duration `toml:"observation_window"`
	MessageBytes      int           `toml:"message_bytes"` // the longest message
	Template          string        `toml:"template"`      // a file that overrides the message
}

// Providers names the agent CLIs when they are not on the PATH.
type Providers struct {
	Codex    string `toml:"codex"`
	Claude   string `toml:"claude"`
	Opencode string `toml:"opencode"`
	// HandInLogins names those whose login agents get with its refresh tokens.
	HandInLogins []string `toml:"hand_in_logins"`
	// OwnConfig lets sessions have the user's own configuration of a CLI, Hooks name those
	// whose hooks and plugins run there, and MCPSecrets the MCP servers that get the secrets
	// that are configured for them.
	OwnConfig  bool     `toml:"own_config"`
	Hooks      []string `toml:"hooks"`
	MCPSecrets []string `toml:"mcp_secrets"`
}

// Vault says where the key of secrets is.
type Vault struct {
	KeyFile string `toml:"key_file"` // vault.key in the home without one
}

// VaultKey is the file that holds the key of secrets.
func (c *Config) VaultKey() string {
	if c.Vault.KeyFile != "" {
		return c.Vault.KeyFile
	}
	return filepath.Join(c.Home, "vault.key")
}

// ProvidersOf reads them from an environment alone, as an executor does.
func ProvidersOf(getenv func(string) string) Providers {
	return Providers{Codex: getenv(Variable("providers.codex")), Claude: getenv(Variable("providers.claude")), Opencode: getenv(Variable("providers.opencode"))}
}

// Default is the configuration of a fresh home.
func Default() Config {
	return Config{
		Log:     Log{Level: "info", Format: "auto"},
		HTTP:    HTTP{Listen: "127.0.0.1:7433"},
		Objects: Objects{Kind: "dir", Style: "auto", Credentials: "auto"},
		Executor: Executor{Kind: "local", Isolation: "box", UIDBase: 1_900_000_000, Path: Path{"inherit"}, Scope: "thread", IdleStop: 20 * time.Minute, RemoveAfter: 24 * time.Hour, OrphanTimeout: time.Hour, SweepEvery: time.Minute, StartsPerSec: 4,
			Cgroup: "auto", CPUs: 1, MemoryMB: 2048, Pids: 512, DiskMB: 20480, MaxLive: 64, SyncTimeout: 30 * time.Minute, SetupTimeout: 10 * time.Minute},
		Egress:    Egress{Policy: string(egress.Default(false))},
		Threads:   Threads{KeepEvents: 90 * 24 * time.Hour},
		Turns:     Turns{MaxRunning: 16, MaxPerUser: 16, Timeout: 6 * time.Hour},
		Agents:    Agents{MCP: true},
		Asks:      Asks{InputTimeout: 15 * time.Minute, InputPolicy: "fail", ApprovalTimeout: 24 * time.Hour, ApprovalPolicy: "fail"},
		Daemon:    Daemon{IdleExit: 10 * time.Minute},
		Providers: Providers{OwnConfig: true},
		Delivery:  Delivery{MaxJobs: 8, MaxBytes: 64 << 10, WaitWindow: 2 * time.Second, MinInterval: 30 * time.Second, ObservationWindow: 2 * time.Hour, MessageBytes: 96 << 10},
	}
}

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
		c.positive("daemon.idle_exit", c.Daemon.IdleExit > 0),
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
	if _, _, err := net.SplitHostPort(c.HTTP.Listen); err != nil {
		checks = append(checks, c.bad("http.listen", "must be HOST:PORT, not %q", c.HTTP.Listen))
	}
	if (c.HTTP.TLSCert == "") != (c.HTTP.TLSKey == "") {
		checks = append(checks, c.bad("http.tls_cert", "and http.tls_key are needed together"))
	}
	if u, err := url.Parse(c.HTTP.PublicURL); c.HTTP.PublicURL != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.String() != u.Scheme+"://"+u.Host) {
		checks = append(checks, c.bad("http.public_url", "must be https://HOST, without a path, not %q", c.HTTP.PublicURL))
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

// Origin says where a key's value came from.
func (c *Config) Origin(key string) string {
	if o := c.origin[key]; o != "" {
		return o
	}
	return "default"
}

// HomeDir resolves the home: the flag, $THOLE_HOME, or ~/.thole.
func HomeDir(flag string, getenv func(string) string) (string, error) {
	for _, dir := range []string{flag, getenv("THOLE_HOME")} {
		if dir != "" {
			return filepath.Abs(dir)
		}
	}
	user := getenv("HOME")
	if user == "" {
		return "", thole.Errorf(thole.CodeInvalid, "no home directory: neither --home, THOLE_HOME nor HOME is set").
			WithHint("set THOLE_HOME to a directory of your own")
	}
	return filepath.Join(user, ".thole"), nil
}

// LoginRooms is the directory of a home in which agent CLIs log in.
const LoginRooms = "login-rooms"

// File is where a home's configuration file is.
func File(home string) string { return filepath.Join(home, "config.toml") }

// Load reads the layers of one home.
func Load(home string, getenv func(string) string, flags map[string]string) (*Config, error) {
	c := Default()
	c.Home = home
	c.origin = map[string]string{}
	text, err := os.ReadFile(File(home))
	if err != nil && !os.IsNotExist(err) {
		return nil, thole.Errorf(thole.CodeUnavailable, "read config: %w", err)
	}
	if err := c.decode(File(home), string(text)); err != nil {
		return nil, err
	}
	if err := c.overlay(getenv, flags); err != nil {
		return nil, err
	}
	variable := Variable("executor.bubblewrap")
	if err := errors.Join(retired(File(home), c.Executor.Bubblewrap), retired(variable, getenv(variable))); err != nil {
		return nil, err
	}
	return &c, c.Validate()
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

var person = regexp.MustCompile(`^[^<>\pC]+ <[^<>\pC ]+>$`)

func (c *Config) checkCoAuthor() error {
	if who := c.Changes.CoAuthor; who != "" && !person.MatchString(who) {
		return c.bad("changes.co_author", "must be NAME <ADDRESS>, not %q", who)
	}
	return nil
}
