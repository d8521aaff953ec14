package cli

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/relay"
	"github.com/tholehq/thole/internal/relay/noise"
	"github.com/tholehq/thole/internal/strictjson"
	wire "github.com/tholehq/thole/protocol/relay"
)

// relayTokenVariable has the token where neither a file nor standard input does.
const relayTokenVariable = "THOLE_RELAY_TOKEN"

// remoteFlags are how a command finds a relay and proves itself there.
type remoteFlags struct {
	base, environment, credential, identity string
	credentialStdin                         bool
}

func (f *remoteFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.base, "remote", "", "address of the relay: https://HOST[:PORT], or http:// to loopback")
	fl.StringVar(&f.environment, "environment-id", "", "name of the environment at the relay")
	fl.StringVar(&f.credential, "credential-file", "", "file with the relay's token (default: the variable "+relayTokenVariable+")")
	fl.StringVar(&f.identity, "identity-file", "", "file with the key to be known by, made when it is missing (default: a new key for each start)")
}

// open makes the client of the registry and the key. The context that it returns ends
// when credentials come over standard input and that is closed.
func (f *remoteFlags) open(ctx context.Context, in io.Reader) (context.Context, *relay.Registry, *noise.Identity, error) {
	if f.environment == "" {
		return nil, nil, nil, thole.Errorf(thole.CodeInvalid, "--remote needs --environment-id, and the id may not be empty")
	}
	token, err := f.token()
	if err != nil {
		return nil, nil, nil, err
	}
	if f.credentialStdin {
		if ctx, token, err = credentials(ctx, in, f.environment); err != nil {
			return nil, nil, nil, err
		}
	}
	reg, err := relay.NewRegistry(f.base, f.environment, token)
	if err != nil {
		return nil, nil, nil, err
	}
	id, err := readIdentity(f.identity)
	return ctx, reg, id, err
}

func (f *remoteFlags) token() (func() (string, error), error) {
	if f.credentialStdin {
		return nil, nil //nolint:nilnil // open reads it
	}
	token := os.Getenv(relayTokenVariable)
	_ = os.Unsetenv(relayTokenVariable) // or every program that a client starts would have it
	if f.credential != "" {
		raw, err := os.ReadFile(f.credential)
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "read the relay's token: %w", err)
		}
		token = string(raw)
	}
	words := strings.Fields(token)
	if len(words) != 1 {
		return nil, thole.Errorf(thole.CodeInvalid, "no token for the relay").WithHint("name a file that has it and nothing else with --credential-file, or set %s", relayTokenVariable)
	}
	return func() (string, error) { return words[0], nil }, nil
}

// own are the files of the flags, which no sandbox shows.
func (f *remoteFlags) own() (out []string) {
	for _, path := range []string{f.credential, f.identity} {
		if path != "" {
			out = append(out, path)
		}
	}
	return out
}

// credentials reads lines of wire.Credential. The newest one is used; when the input
// ends, so does the context.
func credentials(ctx context.Context, in io.Reader, environment string) (context.Context, func() (string, error), error) {
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	var current wire.Credential
	lines := bufio.NewScanner(in)
	next := func() error {
		if !lines.Scan() {
			return errors.Join(io.EOF, lines.Err())
		}
		var c wire.Credential
		err := strictjson.Unmarshal(lines.Bytes(), &c)
		if err != nil || c.Version != 1 || c.EnvironmentID != environment || c.Token == "" {
			return thole.Errorf(thole.CodeInvalid, "invalid credential on standard input: expected a line {version:1,environment_id,token,expires_at} for environment %q", environment)
		}
		mu.Lock()
		current = c
		mu.Unlock()
		return nil
	}
	if err := next(); err != nil {
		cancel()
		return nil, nil, thole.Errorf(thole.CodeInvalid, "no credential on standard input: %w", err)
	}
	go func() { // nothing wakes a reader of stdin: it is not waited for
		defer cancel()
		for next() == nil {
		}
	}()
	return ctx, func() (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if current.ExpiresAt > 0 && time.Now().Unix() >= current.ExpiresAt {
			return "", thole.Errorf(thole.CodeUnauthorized, "the credential has expired and no other came on standard input")
		}
		return current.Token, nil
	}, nil
}

// readIdentity reads a key, or makes it. Without a file it lasts as long as the process.
func readIdentity(path string) (*noise.Identity, error) {
	if path == "" {
		return noise.NewIdentity()
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeIdentity(path)
	}
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read the identity: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, thole.Errorf(thole.CodeInvalid, "the identity in %s can be read by other users", path).WithHint("remove the file, which makes a new key, or chmod 600 it if nobody else was there")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "read the identity: %w", err)
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(raw)))
	if err == nil {
		var id *noise.Identity
		if id, err = noise.ParseIdentity(seed); err == nil {
			return id, nil
		}
	}
	return nil, thole.Errorf(thole.CodeInvalid, "%s has no identity: %w", path, err).WithHint("name another file; one that is missing is made")
}

func makeIdentity(path string) (*noise.Identity, error) {
	id, err := noise.NewIdentity()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, thole.Errorf(thole.CodeInvalid, "make the identity: %w", err)
	}
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(id.Seed()) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, thole.Errorf(thole.CodeUnavailable, "make the identity: %w", err)
	}
	return id, nil
}

// fingerprints checks what a person typed.
func fingerprints(typed []string) ([]string, error) {
	out := make([]string, 0, len(typed))
	for _, s := range typed {
		f, err := noise.ParseFingerprint(s)
		if err != nil {
			return nil, thole.Errorf(thole.CodeInvalid, "%w", err)
		}
		out = append(out, f)
	}
	return out, nil
}
