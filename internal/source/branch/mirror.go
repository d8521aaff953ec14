package branch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/diskspace"
	"github.com/tholehq/thole/internal/git"
	"github.com/tholehq/thole/internal/source"
)

// used is the file of a mirror whose time says when it was fetched last.
const used = "used"

// head is where a mirror keeps what the other side's HEAD was.
const head = "refs/thole/head"

func (b *Branches) mirror(name string) string { return b.dir(name + ".git") }

// resolveURL makes a source of a repository that is fetched into a mirror.
func (b *Branches) resolveURL(ctx context.Context, rec *record, r source.Request) error {
	if r.Dirty {
		return thole.Errorf(thole.CodeInvalid, "%s is fetched, so there are no uncommitted files to take along", r.Repo).WithHint("leave out --dirty, or name a directory")
	}
	if path, ok := strings.CutPrefix(r.Repo, "file://"); ok {
		return b.resolveCopy(ctx, rec, r, path)
	}
	if err := checkURL(r.Repo); err != nil {
		return err
	}
	name := mirrorName(r.Repo, r.Actor.User)
	defer b.lock(name)()
	if err := b.open(ctx, name, ""); err != nil {
		return err
	}
	token, err := b.token(ctx, r)
	if err != nil {
		return err
	}
	if err := b.fetch(ctx, b.mirror(name), r.Repo, r.Ref, token); err != nil {
		return err
	}
	own := b.user().Settings(ctx)
	rec.Source.Repo, rec.User, rec.Email, rec.Origin = r.Repo, own["user.name"], own["user.email"], cleanURL(r.Repo)
	return b.fromMirror(ctx, rec, r, name)
}

// resolveCopy makes a source of a repository of this machine without sharing its objects.
func (b *Branches) resolveCopy(ctx context.Context, rec *record, r source.Request, path string) error {
	if path, ok := strings.CutPrefix(path, "localhost/"); ok {
		return b.resolveCopy(ctx, rec, r, "/"+path)
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		return thole.Errorf(thole.CodeInvalid, "URL %q cannot be read: %w", r.Repo, err)
	}
	at, err := find(plain)
	if err != nil {
		return err
	}
	if err := b.allowed(at); err != nil {
		return err
	}
	if err := b.look(ctx, &at, rec, r.Ref); err != nil {
		return err
	}
	if rec.Source.Repo = r.Repo; r.Dir != "" && !b.has(ctx, at, rec.Source.Commit, r.Dir) {
		return noDir(rec, r.Dir)
	}
	if err := b.copyLocal(ctx, at, rec); err != nil {
		return err
	}
	return b.hold(ctx, rec, func(context.Context) error { return nil })
}

// copyLocal copies the objects of a repository into a mirror and has the record use that.
func (b *Branches) copyLocal(ctx context.Context, at userRepo, rec *record) error {
	if len(rec.Shallow) > 0 || rec.Partial {
		return thole.Errorf(thole.CodeUnsupported, "repository %s has only a part of its history, so it cannot be copied", at.Name()).
			WithHint("git -C %s fetch --unshallow fetches the rest; named by its path it is shared and not copied", at.Name())
	}
	name := mirrorName("file://"+at.Common, "")
	defer b.lock(name)()
	if err := b.open(ctx, name, rec.Format); err != nil {
		return err
	}
	into := b.mirror(name)
	ctx, cancel := b.whileRoom(ctx)
	defer cancel()
	known, err := b.known(ctx, at, into)
	if err != nil {
		return err
	}
	pack, err := os.CreateTemp(into, "pack-")
	if err != nil {
		return err
	}
	defer os.Remove(pack.Name())
	defer pack.Close()
	wanted := rec.Source.Commit + "\n" + known
	if _, err := b.run(ctx, at, git.Cmd{Args: []string{"pack-objects", "--revs", "--stdout", "-q"}, Stdin: strings.NewReader(wanted), Stdout: pack, Timeout: b.cfg.FetchTime}); err != nil {
		return unusable(at, err)
	}
	if err := b.unpack(ctx, into, pack); err != nil {
		return unusable(at, err)
	}
	rec.Mirror, rec.GitDir, rec.UID, rec.Source.Objects = name, into, 0, []string{filepath.Join(into, "objects")}
	return nil
}

// known are commits that a mirror has and the repository still has too, in the form that
// leaves them out of a pack.
func (b *Branches) known(ctx context.Context, at userRepo, mirror string) (string, error) {
	held, err := b.cfg.Git.Own(ctx, mirror, "for-each-ref", "--format=%(objectname)", "refs/thole/base")
	if err != nil {
		return "", err
	}
	out, err := b.run(ctx, at, git.Cmd{Args: []string{"cat-file", "--batch-check"}, Stdin: bytes.NewReader(held)})
	if err != nil {
		return "", unusable(at, err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(out)) {
		if id, kind, _ := strings.Cut(line, " "); validID(id) && strings.HasPrefix(kind, "commit ") {
			text.WriteString("^" + id + "\n")
		}
	}
	return text.String(), nil
}

// unpack takes a pack into a repository of the server, after it looked at every object and
// at what they refer to. Bundles would be simpler, but git takes their objects unseen.
func (b *Branches) unpack(ctx context.Context, into string, pack *os.File) error {
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := b.cfg.Git.RunOwn(ctx, git.Cmd{Dir: into, Args: []string{"index-pack", "--stdin", "--strict=" + harmless}, Stdin: pack, Timeout: b.cfg.FetchTime})
	return err
}

// harmless are faults of objects in old histories that are let pass.
const harmless = "badTimezone=warn,missingSpaceBeforeDate=warn,zeroPaddedFilemode=warn"

// refspecs are what a mirror has of the other side.
var refspecs = []string{"+HEAD:" + head, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"}

// mirrorName is the name of a mirror: one per address and user, as what a user may read
// depends on who it is.
func mirrorName(address string, user thole.UserID) string {
	sum := sha256.Sum256([]byte(address + "\x00" + string(user)))
	return hex.EncodeToString(sum[:8])
}

// open makes a mirror, unless it is there, and notes that it is used. format is that of
// object names, "" for git's own choice.
func (b *Branches) open(ctx context.Context, name, format string) error {
	at := b.mirror(name)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(at, "HEAD")); err != nil {
		// Agents of root are other users: they read objects and nothing else of the home.
		args := []string{"init", "--quiet", "--bare", "--template=", "--shared=0644"}
		if format != "" {
			args = append(args, "--object-format="+format)
		}
		if _, err := b.cfg.Git.Own(ctx, at, args...); err != nil {
			return fmt.Errorf("make a mirror: %w", err)
		}
	}
	return os.WriteFile(filepath.Join(at, used), nil, 0o600)
}

// token is what the asker keeps for the server of an address, "" for nothing.
func (b *Branches) token(ctx context.Context, r source.Request) (string, error) {
	host := git.Host(r.Repo)
	if host == "" || b.cfg.Token == nil {
		return "", nil
	}
	return b.cfg.Token(ctx, thole.Owner{App: thole.DefaultApp, Project: thole.DefaultProject, User: r.Actor.User}, host)
}

// fetch brings a mirror up to date. Without a token the server's user proves itself with
// what its own git has.
func (b *Branches) fetch(ctx context.Context, at, address, ref, token string) error {
	ctx, cancel := b.whileRoom(ctx)
	defer cancel()
	env := map[string]string{"HOME": b.cfg.UserHome}
	base := []string{"fetch", "--quiet", "--no-tags", "--force", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--no-show-forced-updates"}
	_, err := b.cfg.Git.Remote(ctx, git.Cmd{Dir: at, Args: append(append(base, "--prune", "--", address), refspecs...), Env: env, Config: git.Credential(address, token), Timeout: b.cfg.FetchTime})
	if err != nil {
		return fetchFailed(address, err)
	}
	if !validID(ref) {
		return nil
	}
	if _, err := b.cfg.Git.Own(ctx, at, "cat-file", "-e", ref+"^{commit}"); err == nil {
		return nil
	}
	// On no branch and no tag, but the other side may hand it out.
	_, err = b.cfg.Git.Remote(ctx, git.Cmd{Dir: at, Args: append(base, "--", address, ref), Env: env, Config: git.Credential(address, token), Timeout: b.cfg.FetchTime})
	if err != nil {
		return fetchFailed(address, err)
	}
	return nil
}

// fromMirror finds the commit in a mirror and holds it.
func (b *Branches) fromMirror(ctx context.Context, rec *record, r source.Request, name string) error {
	at := b.mirror(name)
	tries := []string{head}
	if r.Ref != "" {
		tries = []string{"refs/heads/" + r.Ref, r.Ref, strings.TrimPrefix(r.Ref, "origin/")}
	}
	for _, try := range tries {
		out, err := b.cfg.Git.Own(ctx, at, "rev-parse", "--verify", "--quiet", "--end-of-options", try+"^{commit}")
		if id := strings.TrimSpace(string(out)); err == nil && validID(id) {
			rec.Source.Commit = id
			break
		}
	}
	if rec.Source.Commit == "" {
		return thole.Errorf(thole.CodeNotFound, "%s has no commit %q", r.Repo, r.Ref).WithHint("git ls-remote %s lists its branches and tags", r.Repo)
	}
	out, err := b.cfg.Git.Own(ctx, at, "rev-parse", "--show-object-format")
	if err != nil {
		return err
	}
	if r.Dir != "" {
		out, err := b.cfg.Git.Own(ctx, at, "cat-file", "-t", rec.Source.Commit+":"+r.Dir)
		if err != nil || strings.TrimSpace(string(out)) != "tree" {
			return noDir(rec, r.Dir)
		}
	}
	rec.Format, rec.Mirror, rec.GitDir, rec.Source.Objects = strings.TrimSpace(string(out)), name, at, []string{filepath.Join(at, "objects")}
	return b.hold(ctx, rec, func(context.Context) error { return nil })
}

func noDir(rec *record, dir string) error {
	return thole.Errorf(thole.CodeNotFound, "commit %s has no directory %q", short(rec.Source.Commit), dir).WithHint("name one that is committed")
}

// reserve is how much room a fetch leaves on the disk.
const reserve = 1 << 30

// whileRoom is a context that ends when the home's disk is nearly full.
func (b *Branches) whileRoom(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if left, err := diskspace.Left(b.cfg.Home); err == nil && left < reserve {
				cancel(thole.Errorf(thole.CodeUnavailable, "the disk of %s is nearly full: %d MB are free", b.cfg.Home, left>>20).WithHint("make room, or set --home to another disk"))
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

// checkURL refuses addresses that are not fetched.
func checkURL(address string) error {
	if git.Transport(address) == "" {
		scheme, _, _ := strings.Cut(address, ":")
		return thole.Errorf(thole.CodeInvalid, "repositories are not fetched by %q", scheme).WithHint("name an https:// or ssh:// URL, or a directory of this machine")
	}
	if !strings.Contains(address, "://") {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || strings.HasPrefix(u.Host, "-") {
		return thole.Errorf(thole.CodeInvalid, "repository URL cannot be read").WithHint("write it as https://HOST/PATH or ssh://USER@HOST/PATH")
	}
	if _, set := u.User.Password(); set || u.Scheme != "ssh" && token(u.User.Username()) {
		return thole.Errorf(thole.CodeInvalid, "the URL of %s has a password or a token in it, which would be stored with the thread", u.Host).
			WithHint("leave it out and let git have it: git credential approve, or a credential helper; thole secret set keeps tokens of forges")
	}
	return nil
}

// token reports whether a name in a URL looks like one.
func token(name string) bool {
	for _, prefix := range []string{"ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "oauth2", "x-access-token"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return len(name) >= 32
}

// fetchFailed says of a failed fetch what to do next.
func fetchFailed(address string, err error) error {
	var failed *git.Error
	if errors.Is(err, context.DeadlineExceeded) {
		return thole.Errorf(thole.CodeUnavailable, "%s was not fetched in time", address).WithHint("try again: what came is kept; or clone it yourself and name the directory")
	}
	if !errors.As(err, &failed) {
		return fmt.Errorf("fetch %s: %w", address, err)
	}
	said := strings.ToLower(failed.Stderr)
	says := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(said, p) {
				return true
			}
		}
		return false
	}
	no := func(code thole.Code, what, hint string) error {
		return thole.Errorf(code, "fetch %s: %s: %w", address, what, err).WithHint("%s", hint)
	}
	try := "git ls-remote " + address + " has to work in a shell without asking; "
	switch {
	case says("host key verification failed"):
		return no(thole.CodeUnavailable, "the host's key is not known", "connect once by hand with ssh and compare the key")
	case says("could not resolve host", "name or service not known", "temporary failure in name resolution"):
		return no(thole.CodeNotFound, "there is no such host", "correct the URL, or look at the network: thole doctor")
	case says("permission denied", "authentication failed", "could not read username", "could not read password", "terminal prompts disabled", "returned error: 401", "returned error: 403", "access denied"):
		return no(thole.CodeForbidden, "the host wants to know who you are", try+"set up ssh-agent or a git credential helper, or keep a token: thole secret set NAME --kind git --provider HOST")
	case says("couldn't find remote ref head"):
		return no(thole.CodeNotFound, "it has no commit yet", "push one, then try again")
	case says("not found", "does not appear to be a git repository", "not a git repository", "returned error: 404", "not valid: is this a git repository"):
		return no(thole.CodeNotFound, "there is no repository, or you may not see it", try+"correct the URL")
	case says("connection refused", "connection timed out", "failed to connect", "network is unreachable", "no route to host", "operation timed out", "operation too slow"):
		return no(thole.CodeUnavailable, "the host does not answer", "look at the network and at HTTPS_PROXY, then try again")
	}
	return no(thole.CodeUnavailable, "git failed", try+"then try again")
}
