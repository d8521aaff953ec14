package cli

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	thole "github.com/tholehq/thole"
)

// unit is a file that has the system start thole up.
type unit struct {
	home  string
	path  string
	text  []byte
	links []string // what enabling it made
	start []string // what to type
	stop  []string
}

const (
	unitName   = "thole.service"
	agentLabel = "com.github.tholehq.thole"
)

// unit is the one of this user, program and home.
func (e *Env) unit(goos string) (unit, error) {
	home, err := e.home()
	if err != nil {
		return unit{}, err
	}
	exe, err := os.Executable()
	if err != nil {
		return unit{}, thole.Errorf(thole.CodeUnavailable, "find own program: %w", err)
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return unit{}, thole.Errorf(thole.CodeInvalid, "no home directory: %w", err).WithHint("set HOME")
	}
	// The agents' CLIs are found as they are found here: what the system starts has
	// a short PATH.
	path := cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin")
	for _, s := range []string{home, exe, user, path} {
		if strings.ContainsFunc(s, unicode.IsControl) {
			return unit{}, thole.Errorf(thole.CodeInvalid, "%q has a control character, which no unit can hold", s).WithHint("choose another --home or PATH")
		}
	}
	switch goos {
	case "linux":
		if strings.ContainsAny(exe, "\"'\\") {
			return unit{}, thole.Errorf(thole.CodeInvalid, "systemd starts no program with quotes or backslashes in its path: %s", exe).WithHint("move thole to another directory")
		}
		dir := filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(user, ".config")), "systemd", "user")
		return unit{
			home: home, path: filepath.Join(dir, unitName), text: systemdUnit(exe, home, path),
			links: []string{filepath.Join(dir, "default.target.wants", unitName)},
			start: []string{"systemctl --user daemon-reload", "systemctl --user enable --now " + unitName,
				"loginctl enable-linger   # to have it run without a login too", "thole login   # prints a link to the web page"},
			stop: []string{"systemctl --user stop " + unitName, "systemctl --user daemon-reload"},
		}, nil
	case "darwin":
		file := filepath.Join(user, "Library", "LaunchAgents", agentLabel+".plist")
		return unit{
			home: home, path: file, text: launchdPlist(exe, home, path),
			start: []string{"launchctl bootstrap gui/$(id -u) '" + strings.ReplaceAll(file, "'", `'\''`) + "'", "thole login   # prints a link to the web page"},
			stop:  []string{"launchctl bootout gui/$(id -u)/" + agentLabel},
		}, nil
	}
	return unit{}, thole.Errorf(thole.CodeUnsupported, "no services on %s: only systemd and launchd are known", goos).WithHint("start thole up by other means")
}

// systemdUnit delegates its control group, so that executors get limits, and has
// the service run in a subgroup of it, since a group that is divided can hold no
// process itself. Only the main process is killed: executors outlive their owner.
// The login link goes to standard output, and is a secret that no journal keeps.
func systemdUnit(exe, home, path string) []byte {
	return []byte(`# ` + unitMark + `; thole service uninstall removes it.
[Unit]
Description=thole: agent threads, executors and delivery
Documentation=https://github.com/tholehq/thole

[Service]
Type=exec
Environment=` + systemdQuote("PATH="+path) + `
ExecStart=` + systemdQuote(exe) + ` up --no-browser --home ` + systemdArg(home) + `
StandardOutput=null
StandardError=journal
Restart=on-failure
RestartSec=2
KillMode=process
TimeoutStopSec=60
Delegate=yes
DelegateSubgroup=main

[Install]
WantedBy=default.target
`)
}

// systemdQuote makes one word, in which systemd expands nothing.
func systemdQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(s) + `"`
}

// systemdArg is an argument of a command, where variables are expanded as well.
func systemdArg(s string) string { return systemdQuote(strings.ReplaceAll(s, "$", "$$")) }

func launchdPlist(exe, home, path string) []byte {
	log := filepath.Join(home, "service.log")
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>
<!-- ` + unitMark + `; thole service uninstall removes it. -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>` + agentLabel + `</string>
	<key>ProgramArguments</key>
	<array>
		<string>` + escapeXML(exe) + `</string>
		<string>up</string>
		<string>--no-browser</string>
		<string>--home</string>
		<string>` + escapeXML(home) + `</string>
	</array>
	<key>EnvironmentVariables</key>
	<dict>
		<key>PATH</key>
		<string>` + escapeXML(path) + `</string>
	</dict>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>AbandonProcessGroup</key>
	<true/>
	<key>Umask</key>
	<integer>63</integer>
	<key>StandardOutPath</key>
	<string>/dev/null</string>
	<key>StandardErrorPath</key>
	<string>` + escapeXML(log) + `</string>
</dict>
</plist>
`)
}

func escapeXML(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}
