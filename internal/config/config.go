// Package config holds the program's settings: one struct, four layers, defaults
// < file < environment < flags. It knows every key and where each value came
// from; it validates and refuses unknown keys by name. It connects to nothing.
package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/tholehq/thole/internal/channel/message"
	"github.com/tholehq/thole/internal/delivery"
	"github.com/tholehq/thole/internal/egress"
)

// Config is every setting. A field's key is the path of its toml names,
// `http.listen`; its variable is THOLE_HTTP_LISTEN.
type Config struct {
	Home      string    `toml:"-"`
	Log       Log       `toml:"log"`
	HTTP      HTTP      `toml:"http"`
	Store     Store     `toml:"store"`
	Server    Server    `toml:"server"`
	OIDC      OIDC      `toml:"oidc"`
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
	Notify    Notify    `toml:"notify"`
	Delivery  Delivery  `toml:"delivery"`
	Desktop   Desktop   `toml:"desktop"`
	Prices    Prices    `toml:"prices"`
	Providers Providers `toml:"providers"`
	Vault     Vault     `toml:"vault"`
	Relay     Relay     `toml:"relay"`

	file   string // that was named, "" for the home's own
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
	// TrustedProxies are addresses and networks whose X-Forwarded-For is believed.
	TrustedProxies []string `toml:"trusted_proxies"`
	TLSCert        string   `toml:"tls_cert"`
	TLSKey         string   `toml:"tls_key"`
}

// Proxies are the networks of the trusted proxies.
func (h HTTP) Proxies() (all []netip.Prefix, err error) {
	for _, text := range h.TrustedProxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			one, no := netip.ParseAddr(text)
			if no != nil {
				return nil, fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", text)
			}
			network = netip.PrefixFrom(one.Unmap(), one.Unmap().BitLen())
		}
		if network.Bits() == 0 {
			return nil, fmt.Errorf("%s is everybody: anybody could say to be anywhere", text)
		}
		all = append(all, network)
	}
	return all, nil
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
	Keep              time.Duration `toml:"keep"`          // ended jobs and their ledger
	Steer             []string      `toml:"steer"`         // classes of running turns that results may go into
	MessageBytes      int           `toml:"message_bytes"` // the longest message
	Template          string        `toml:"template"`      // a file that overrides the message
}

// Desktop is the channel to the Codex Desktop app.
type Desktop struct {
	Enabled bool `toml:"enabled"`
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

// Relay is where exec-servers and their clients meet, at the address of the page.
type Relay struct {
	TokensFile string `toml:"tokens_file"` // none without it
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
		Store:   Store{URL: "sqlite:"},
		Server:  Server{Roles: roleNames(), Listen: "127.0.0.1:0"},
		OIDC:    OIDC{Scopes: []string{"openid", "profile", "email"}, GroupsClaim: "groups", Label: "single sign-on"},
		Objects: Objects{Kind: "dir", Style: "auto", Credentials: "auto"},
		Executor: Executor{Kind: "local", Isolation: "box", UIDBase: 1_900_000_000, Path: Path{"inherit"}, Scope: "thread", IdleStop: 20 * time.Minute, RemoveAfter: 24 * time.Hour, OrphanTimeout: time.Hour, SweepEvery: time.Minute, StartsPerSec: 4,
			Cgroup: "auto", CPUs: 1, MemoryMB: 2048, Pids: 512, DiskMB: 20480, MaxLive: 64, SyncTimeout: 30 * time.Minute, SetupTimeout: 10 * time.Minute},
		Egress:    Egress{Policy: string(egress.Default(false))},
		Threads:   Threads{KeepEvents: 90 * 24 * time.Hour},
		Turns:     Turns{MaxRunning: 16, MaxPerUser: 16, Timeout: 6 * time.Hour},
		Agents:    Agents{MCP: true},
		Asks:      Asks{InputTimeout: 15 * time.Minute, InputPolicy: "fail", ApprovalTimeout: 24 * time.Hour, ApprovalPolicy: "fail"},
		Daemon:    Daemon{IdleExit: 10 * time.Minute},
		Notify:    Notify{On: slices.Clone(NotifyEvents)},
		Providers: Providers{OwnConfig: true},
		Delivery:  defaultDelivery(),
	}
}

// defaultDelivery is the machine's own numbers, so that there is one place for them.
func defaultDelivery() Delivery {
	l := delivery.DefaultLimits()
	return Delivery{
		MaxJobs: int(l.MaxJobs), MaxBytes: l.MaxBytes, WaitWindow: l.WaitWindow, MinInterval: l.MinInterval, ObservationWindow: l.Observation,
		Keep: 30 * 24 * time.Hour, MessageBytes: message.DefaultLimit,
	}
}
