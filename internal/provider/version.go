package provider

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/process"
)

// Version is a CLI's version, comparable with Less.
type Version [3]int

// ParseVersion finds the first version in what a CLI printed, and its text: a
// pre-release keeps its suffix in the text only.
func ParseVersion(s string) (v Version, text string, ok bool) {
	for _, word := range strings.Fields(s) {
		parts := strings.SplitN(strings.TrimPrefix(word, "v"), ".", 3)
		if len(parts) != 3 {
			continue
		}
		ok = true
		for i, p := range parts {
			p, _, _ = strings.Cut(p, "-")
			p, _, _ = strings.Cut(p, "+")
			n, err := strconv.Atoi(p)
			ok = ok && err == nil
			v[i] = n
		}
		if ok {
			return v, strings.Join(parts, "."), true
		}
	}
	return Version{}, "", false
}

// Less compares number by number.
func (v Version) Less(w Version) bool {
	for i := range v {
		if v[i] != w[i] {
			return v[i] < w[i]
		}
	}
	return false
}

// Query is one look at a CLI, in an empty home that is gone afterwards.
type Query struct {
	Binary string
	Args   []string
	Homes  []string // variables that are set to the home, besides HOME
	Env    map[string]string
}

// maxAnswer bounds what a query keeps.
const maxAnswer = 8 << 20

// Output runs the CLI to its end and returns what it printed.
func (q Query) Output(ctx context.Context) (string, error) {
	home, err := os.MkdirTemp("", "thole-probe-")
	if err != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "make a home for the probe: %w", err)
	}
	defer os.RemoveAll(home)
	env := map[string]string{"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin"}
	for _, k := range q.Homes {
		env[k] = home
	}
	maps.Copy(env, q.Env)
	p, err := process.Start(process.Spec{Path: q.Binary, Args: q.Args, Dir: home, Env: env})
	if err != nil {
		return "", err
	}
	defer p.Stdout.Close()
	defer p.Kill()
	defer context.AfterFunc(ctx, p.Kill)()
	p.Stdin.Close()
	out, _ := io.ReadAll(io.LimitReader(p.Stdout, maxAnswer))
	if err := p.Wait(ctx); err != nil {
		return "", thole.Errorf(thole.CodeUnavailable, "%s %s: %s", filepath.Base(q.Binary), strings.Join(q.Args, " "), p.Diagnosis())
	}
	return string(out), nil
}
