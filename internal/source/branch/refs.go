package branch

import (
	"context"
	"strings"

	thole "github.com/tholehq/thole"
)

// maxRefs bounds the names that a copy takes over.
const maxRefs = 50_000

// names are the branches, the tags and the branches of remotes of a repository, as a copy
// has them: one list as git packs it, and by its path what leads from one name to another.
// Agents compare with them, and builds ask for the last tag. All objects are shared, so that
// each name leads somewhere. A mirror's branches are those of the remote.
func (b *Branches) names(ctx context.Context, rec *record, s thole.Source) (packed string, leads map[string]string, err error) {
	out, err := b.ask(ctx, rec, "for-each-ref", "--format=%(objectname) %(refname) %(symref)", "refs/heads", "refs/remotes", "refs/tags")
	if err != nil {
		return "", nil, err
	}
	own := "refs/heads/" + s.Branch
	var list strings.Builder
	leads = map[string]string{}
	n := 0
	for line := range strings.Lines(out) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(words) != 3 || !validID(words[0]) {
			continue
		}
		name, to := words[1], words[2]
		if rest, ok := strings.CutPrefix(name, "refs/heads/"); ok && rec.Mirror != "" {
			name = "refs/remotes/" + remoteOf(rec) + "/" + rest
		}
		if n++; n > maxRefs {
			break
		}
		switch {
		case to != "": // HEAD of a remote; other such names are rare, and lead to one that is here
			if strings.HasPrefix(name, "refs/remotes/") && strings.HasSuffix(name, "/HEAD") && strings.HasPrefix(to, "refs/remotes/") {
				leads[".git/"+name] = "ref: " + to + "\n"
			}
		case name == own, strings.HasPrefix(own, name+"/"), strings.HasPrefix(name, own+"/"): // no room next to the thread's own
		default:
			list.WriteString(words[0] + " " + name + "\n")
		}
	}
	return list.String(), leads, nil
}

// remoteOf is what the copy calls the remote that its repository came from.
func remoteOf(rec *record) string {
	if rec.Remote == "" {
		return "origin"
	}
	return rec.Remote
}
