// Package sandbox turns a permission profile of protocol/exec into rules and
// enforces them: Access decides about one real path, Wrapper runs a program in
// namespaces of its own through bubblewrap, Confined runs a function on a thread
// that Landlock restricts. A profile that cannot be enforced is an error, never
// ignored. It opens no files for callers and knows no protocol messages.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/tholehq/thole/protocol/exec"
)

// Access is what a profile allows on a path.
type Access uint8

// Access levels; each includes the ones before it.
const (
	None Access = iota
	Read
	Write
)

// Place is where a profile's special paths are resolved.
type Place struct {
	Cwd    string
	TmpDir string   // the executor's TMPDIR, may be empty
	Own    []string // of the server itself: sockets, tokens, its home; a profile never shows them
}

// Protected are names in a writable directory that a profile makes read-only unless
// it names them: what agents and git run or obey comes from there.
var Protected = []string{".git", ".codex", ".agents", ".aws"}

// rule gives access to a path and what is below it.
type rule struct {
	path   string // clean; real when it exists
	access Access
	exists bool
	link   bool // the path leads elsewhere, where another rule holds; it cannot be mounted on

	via     []string // links that the entry's path leads through
	implied bool     // no entry asks for it
}

// globRule gives access to what matches a pattern.
type globRule struct {
	pattern string
	access  Access
}

// Policy is a compiled profile.
type Policy struct {
	managed    bool
	restricted bool
	network    bool // reachable
	rules      []rule
	globs      []globRule
	scanDepth  int
	roots      []string // the project's
	own        []string // the server's, real
	kept       []string // that nobody changes, real
	links      []link   // names under which readable places are also known
}

// link is a path that leads to a readable one.
type link struct{ path, real string }

// ErrUnenforceable marks a profile that this machine cannot enforce.
var ErrUnenforceable = errors.New("sandbox intent cannot be enforced on this executor")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnenforceable, fmt.Sprintf(format, args...))
}

// Compile checks a profile and resolves its paths as they are now.
func Compile(s *exec.Sandbox, at Place) (*Policy, error) {
	switch s.WindowsLevel {
	case "disabled", "restricted-token", "elevated", "mxc":
	case "":
		return nil, errors.New("missing field `windowsSandboxLevel`")
	default:
		return nil, fmt.Errorf("unknown variant `%s`, expected one of `disabled`, `restricted-token`, `elevated`, `mxc`", s.WindowsLevel)
	}
	cwd, roots := s.Cwd, s.WorkspaceRoots
	if s.PolicyContext != nil {
		cwd, roots = s.PolicyContext.Cwd, s.PolicyContext.WorkspaceRoots
	}
	if cwd != nil {
		dir, err := native(*cwd)
		if err != nil {
			return nil, err
		}
		at.Cwd = dir
	}
	if len(at.Cwd) >= maxPath {
		return nil, errLongPath
	}
	if len(roots) > maxEntries {
		return nil, errManyEntries
	}
	p := &Policy{scanDepth: 16}
	for _, r := range roots {
		dir, err := native(r)
		if err != nil {
			return nil, err
		}
		p.roots = append(p.roots, dir)
	}
	if len(p.roots) == 0 && at.Cwd != "" {
		p.roots = []string{at.Cwd}
	}
	for _, path := range at.Own {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			p.own = append(p.own, real)
		}
	}
	perm := s.Permissions
	switch perm.Type {
	case exec.PermissionsDisabled, exec.PermissionsExternal:
		p.network = true
		return p, nil
	case exec.PermissionsManaged:
	case "":
		return nil, errors.New("missing field `permissions`")
	default:
		return nil, fmt.Errorf("unknown variant `%s`, expected one of `managed`, `disabled`, `external`", perm.Type)
	}
	p.managed = true
	switch perm.Network {
	case exec.NetworkEnabled:
		p.network = true
	case exec.NetworkRestricted:
	default:
		return nil, fmt.Errorf("unknown variant `%s`, expected one of `restricted`, `enabled`", perm.Network)
	}
	if perm.FileSystem == nil {
		return nil, errors.New("missing field `file_system`")
	}
	switch perm.FileSystem.Type {
	case exec.FSUnrestricted:
		return p, nil
	case exec.FSRestricted:
	default:
		return nil, fmt.Errorf("unknown variant `%s`, expected one of `restricted`, `unrestricted`", perm.FileSystem.Type)
	}
	p.restricted = true
	if d := perm.FileSystem.GlobScanMaxDepth; d != nil {
		p.scanDepth = *d
	}
	for i, e := range perm.FileSystem.Entries {
		if err := p.add(e, at); err != nil {
			return nil, err
		}
		if i == maxEntries || len(p.rules) > 2*maxEntries { // an entry may stand for every root
			return nil, errManyEntries
		}
	}
	p.rules = slices.DeleteFunc(p.rules, func(r rule) bool { // however specific: they hold tokens and sockets
		return r.access != None && slices.ContainsFunc(p.own, func(own string) bool { return within(r.path, own) })
	})
	for _, path := range p.own {
		p.rule(path, None)
	}
	p.protect()
	p.sort()
	if err := p.planted(); err != nil {
		return nil, err
	}
	p.pin()
	return p, nil
}

// sort puts the most specific rule last and, at equal length, the least access, so that
// the last match decides.
func (p *Policy) sort() {
	slices.SortStableFunc(p.rules, func(a, b rule) int {
		if d := len(a.path) - len(b.path); d != 0 {
			return d
		}
		return rank(a.access) - rank(b.access)
	})
}

// Hiding allows everything but places of the server's own.
func Hiding(own []string) *Policy {
	p := &Policy{managed: true, restricted: true, network: true}
	p.rule("/", Write)
	for _, path := range own {
		p.rule(path, None)
	}
	return p
}

// Keep lets nobody change paths, or what is above them.
func (p *Policy) Keep(paths []string) { p.kept = append(p.kept, paths...) }

// rank orders equals: deny beats write beats read.
func rank(a Access) int {
	if a == None {
		return 3
	}
	return int(a)
}

func (p *Policy) add(e exec.FSEntry, at Place) error {
	var access Access
	switch e.Access {
	case exec.AccessRead:
		access = Read
	case exec.AccessWrite:
		access = Write
	case exec.AccessDeny, exec.AccessNone:
	default:
		return fmt.Errorf("unknown variant `%s`, expected one of `read`, `write`, `deny`", e.Access)
	}
	switch e.Path.Type {
	case exec.FSPathPath:
		path, err := native(e.Path.Path)
		if err != nil {
			return err
		}
		p.rule(path, access)
	case exec.FSPathGlob:
		return p.glob(e.Path.Pattern, access, at)
	case exec.FSPathSpecial:
		return p.special(e.Path.Value, access, at)
	default:
		return fmt.Errorf("unknown variant `%s`, expected one of `path`, `glob_pattern`, `special`", e.Path.Type)
	}
	return nil
}

// rule adds a path and, when links lead elsewhere, the place it really is.
func (p *Policy) rule(path string, access Access) {
	path = filepath.Clean(path)
	_, via := Follow(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		p.rules = append(p.rules, rule{path: realParent(path), access: access, via: via})
		return
	}
	p.rules = append(p.rules, rule{path: real, access: access, exists: true, via: via})
	if real == path {
		return
	}
	if access != None {
		p.links = append(p.links, link{path, real})
	}
	if access != Write { // the name must not be given to something else
		at := filepath.Join(realParent(filepath.Dir(path)), filepath.Base(path))
		if at != real {
			p.rules = append(p.rules, rule{path: at, access: access, exists: true, link: true})
		}
	}
}

// protect adds what writable directories keep from change. A program that may write
// everywhere may write there too.
func (p *Policy) protect() {
	named := map[string]bool{}
	for _, r := range p.rules {
		named[r.path] = true
	}
	for _, l := range p.links {
		named[l.path] = true
	}
	entries := len(p.rules)
	defer func() {
		for i := range p.rules[entries:] {
			p.rules[entries+i].implied = true
		}
	}()
	for _, r := range p.rules {
		if r.access != Write || r.path == "/" || slices.Contains(Protected, filepath.Base(r.path)) {
			continue
		}
		if fi, err := os.Stat(r.path); err != nil || !fi.IsDir() {
			continue
		}
		for _, name := range Protected {
			if path := filepath.Join(r.path, name); !named[path] {
				named[path] = true
				p.rule(path, Read)
			}
		}
	}
}

// realParent resolves as much of a missing path as exists.
func realParent(path string) string {
	rest := ""
	for dir := path; dir != "/"; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
	return path
}

// maxEntries and maxPath bound what a profile costs to look at: every entry is compared with
// every other, and each name of a path is looked up. No longer path can be opened either.
const (
	maxEntries = 4096
	maxPath    = 4096
)

func native(uri string) (string, error) {
	path, err := exec.ParseURI(uri)
	if err == nil && len(path) >= maxPath {
		return "", errLongPath
	}
	return path, err
}

var (
	errLongPath    = refuse("a path has more than %d bytes", maxPath-1)
	errManyEntries = refuse("a profile has at most %d entries and roots", maxEntries)
)

func (p *Policy) glob(pattern string, access Access, at Place) error {
	if len(pattern) >= maxPath {
		return errLongPath
	}
	if access != None {
		return refuse("glob patterns can only deny")
	}
	if path, err := exec.ParseURI(pattern); err == nil {
		pattern = path
	}
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(at.Cwd, pattern)
	}
	if !doublestar.ValidatePattern(pattern) {
		return fmt.Errorf("invalid glob pattern `%s`", pattern)
	}
	g := globRule{pattern, access}
	p.globs = append(p.globs, g)
	base, rest := doublestar.SplitPattern(pattern)
	if real := realParent(base); real != base { // it holds where the links lead, too
		p.globs = append(p.globs, globRule{filepath.Join(escape.Replace(real), rest), access})
	}
	return nil
}

// escape makes a path a pattern that it alone matches.
var escape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`, `}`, `\}`, `]`, `\]`)

// base is the part of a pattern before anything that stands for something else.
func (g globRule) base() string {
	base, _ := doublestar.SplitPattern(g.pattern)
	return base
}

func (p *Policy) special(v *exec.FSSpecial, access Access, at Place) error {
	if v == nil {
		return errors.New("missing field `value`")
	}
	if v.Subpath != nil && len(*v.Subpath) >= maxPath {
		return errLongPath
	}
	below := func(dir string) string {
		if v.Subpath != nil {
			return filepath.Join(dir, filepath.Join("/", *v.Subpath))
		}
		return dir
	}
	switch v.Kind {
	case exec.SpecialRoot:
		p.rule("/", access)
	case exec.SpecialMinimal:
		for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc"} {
			if _, err := os.Stat(dir); err == nil {
				p.rule(dir, access)
			}
		}
	case exec.SpecialProjectRoots:
		for _, r := range p.roots {
			p.rule(below(r), access)
		}
	case exec.SpecialTmpdir:
		if filepath.IsAbs(at.TmpDir) {
			p.rule(below(at.TmpDir), access)
		}
	case exec.SpecialSlashTmp:
		p.rule(below("/tmp"), access)
	default:
		return refuse("unknown special path `%s`", v.Kind)
	}
	return nil
}

// Confines reports whether processes need a sandbox at all.
func (p *Policy) Confines() bool { return p != nil && p.managed && (p.restricted || !p.network) }

// RestrictsFiles reports whether file calls must ask Access.
func (p *Policy) RestrictsFiles() bool { return p != nil && p.restricted }

// Access decides about a real path: absolute, clean, without links.
func (p *Policy) Access(real string) Access {
	if !p.RestrictsFiles() {
		return Write
	}
	access := decide(p.rules, real)
	if access != None && (machine(real) || p.globbed(real)) {
		return None
	}
	if access == Write && slices.ContainsFunc(p.kept, func(path string) bool { return within(real, path) || within(path, real) }) {
		return Read
	}
	return access
}

// Denied reports whether an entry denies the path by name, which also forbids
// passing through it; a path that is merely not listed may be passed.
func (p *Policy) Denied(real string) bool {
	if !p.RestrictsFiles() {
		return false
	}
	denied := false
	for _, r := range p.rules {
		if within(real, r.path) {
			denied = r.access == None
		}
	}
	return denied || machine(real) || p.globbed(real)
}

// decide is what sorted rules give a path.
func decide(rules []rule, path string) Access {
	access := None
	for _, r := range rules {
		if within(path, r.path) {
			access = r.access
		}
	}
	return access
}

// machine reports whether a path is of the kernel and the processes out here, the server
// among them with its tokens. A program sees a /proc of its own; file calls see none.
func machine(real string) bool { return within(real, "/proc") }

// globbed reports whether the path or a directory above it matches a pattern.
func (p *Policy) globbed(real string) bool {
	for _, g := range p.globs {
		for at := real; at != "/"; at = filepath.Dir(at) {
			if ok, _ := doublestar.Match(g.pattern, at); ok {
				return true
			}
		}
	}
	return false
}

func within(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}
