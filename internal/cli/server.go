package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/atomicfile"
	"github.com/tholehq/thole/internal/strictjson"
)

// remoteServer is a team server that commands talk to in place of the home's owner.
type remoteServer struct {
	URL   string `json:"-"`
	Token string `json:"token"`
	ID    string `json:"id"` // of the token
	Login string `json:"login"`
}

// logins are the team servers that this user is logged in to.
type logins struct {
	Default string                   `json:"default,omitempty"`
	Servers map[string]*remoteServer `json:"servers"`
}

// localServer names the home where a team server is the default.
const localServer = "local"

// tokenVariable has the API token of a script for the server that --server or THOLE_SERVER
// names, where nobody logs in.
const tokenVariable = "THOLE_TOKEN"

func loginsFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", thole.Errorf(thole.CodeInvalid, "find the directory of logins: %w", err).WithHint("set HOME or XDG_CONFIG_HOME")
	}
	return filepath.Join(dir, "thole", "servers.json"), nil
}

func readLogins() (*logins, error) {
	all := &logins{Servers: map[string]*remoteServer{}}
	file, err := loginsFile()
	if err != nil {
		return all, nil //nolint:nilerr // without a directory there is no login
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = strictjson.Unmarshal(text, all)
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read logins: %s: %w", file, err).WithHint("move the file away, and log in again with thole login --server URL")
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, thole.Errorf(thole.CodeForbidden, "other users can read the logins in %s", file).WithHint("chmod 600 %s, and thole logout if another user was there", file)
	}
	for at, s := range all.Servers {
		s.URL = at
	}
	return all, nil
}

func (l *logins) write() error {
	file, err := loginsFile()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(l, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(file, append(text, '\n'), 0o600)
	}
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "keep the login: %w", err)
	}
	return nil
}

// serverURL is the one form of a server's address. A token never goes over a network unencrypted.
func serverURL(text string) (string, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.String() != u.Scheme+"://"+u.Host {
		return "", thole.Errorf(thole.CodeInvalid, "a server is https://HOST[:PORT], not %q", text)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if u.Scheme == "http" && u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback()) {
		return "", thole.Errorf(thole.CodeForbidden, "refusing to talk to %s without encryption", u.Host).WithHint("use https://%s; http:// is for this machine alone", u.Host)
	}
	return strings.ToLower(u.String()), nil
}

// server is the team server that commands talk to, nil for the home: what --server says, else
// THOLE_SERVER, else the one of the last thole login unless a home was named.
func (e *Env) server() (*remoteServer, error) {
	name := e.Server
	if name == "" {
		name = os.Getenv("THOLE_SERVER")
	}
	if name == localServer || name == "" && (e.Home != "" || os.Getenv("THOLE_HOME") != "") {
		return nil, nil //nolint:nilnil // none
	}
	all, err := readLogins()
	if err != nil {
		return nil, err
	}
	if name == "" {
		return all.Servers[all.Default], nil
	}
	if name, err = serverURL(name); err != nil {
		return nil, err
	}
	if t := os.Getenv(tokenVariable); t != "" {
		return &remoteServer{URL: name, Token: t}, nil
	}
	if s := all.Servers[name]; s != nil {
		return s, nil
	}
	return nil, thole.Errorf(thole.CodeUnauthorized, "not logged in to %s", name).WithHint("thole login --server %s; a script sets %s to an API token", name, tokenVariable)
}

// onlyOnServer refuses what a team server does not offer to clients of the network.
func onlyOnServer(what, instead string) error {
	return thole.Errorf(thole.CodeUnsupported, "%s does not work against a team server", what).WithHint("%s; --server local asks the home of this machine", instead)
}

// contract is where the server speaks the app-server protocol.
func (s *remoteServer) contract() string {
	return "ws" + strings.TrimPrefix(s.URL, "http") + "/contract"
}

// ask calls a method of the server.
func (s *remoteServer) ask(ctx context.Context, method string, params, result any) error {
	err := s.send(ctx, http.MethodPost, "/methods", map[string]any{"method": method, "params": params}, result)
	switch thole.CodeOf(err) {
	case thole.CodeUnauthorized:
		return thole.Errorf(thole.CodeUnauthorized, "the login or token for %s has ended", s.URL).WithHint("thole login --server %s", s.URL)
	case thole.CodeNotFound:
		if strings.Contains(err.Error(), "for clients of the network") {
			return onlyOnServer("this command", "run it on the machine of the server, or use its page")
		}
	}
	return err
}

func (s *remoteServer) send(ctx context.Context, method, path string, body, result any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.Token)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // a token goes to one host
	res, err := client.Do(req)
	if err != nil {
		return thole.Errorf(thole.CodeUnavailable, "ask %s: %w", s.URL, err).WithHint("is the address right, and the server up?")
	}
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		return readProblem(res)
	}
	if result == nil || res.StatusCode == http.StatusNoContent {
		return nil
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err == nil {
		err = strictjson.Unmarshal(answer, result)
	}
	return err
}

// readProblem makes an error of the server's answer.
func readProblem(res *http.Response) error {
	var p struct {
		Detail string `json:"detail"`
		Code   string `json:"code"`
		Hint   string `json:"hint"`
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err == nil {
		err = strictjson.Unmarshal(text, &p)
	}
	if err != nil || p.Detail == "" {
		return thole.Errorf(thole.CodeUnavailable, "the server answered %s, and no answer of thole", res.Status).WithHint("is the address that of a thole server?")
	}
	return &thole.Error{Code: thole.Code(p.Code), Message: p.Detail, Hint: p.Hint}
}
