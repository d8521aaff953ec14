package branch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Files that a filter of git changes are others in a commit than in a working tree. Those that
// LFS keeps elsewhere are pointers in a commit and content in a working tree. The content of
// those that a user changed is carried; of the others the pointer stays.

// change is an entry of the desk's index that differs from the base.
type change struct{ kind, mode, before, after, path string }

// filtered puts files back that git's filters would have changed. Of those of LFS it is the
// pointers whose content was fetched: git takes them for changed where its index is as old as
// they are, as after a clone. Content of another filter is not what the user commits: it may
// be a secret that the filter encrypts. So it is left out, and named.
func (d *desk) filtered(ctx context.Context, rec *record, changes []change) error {
	filters, err := d.filters(ctx, changes)
	if err != nil || len(filters) == 0 {
		return err
	}
	var back strings.Builder
	for _, c := range changes {
		switch name := filters[c.path]; {
		case name == "lfs":
			same, err := d.pointed(ctx, c)
			if err != nil {
				return err
			}
			if same {
				fmt.Fprintf(&back, "%s %s\t%s\x00", c.mode, c.before, c.path)
			}
		case !slices.Contains(d.at.filters, name): // it does nothing for the user either
		case c.kind == "A":
			fmt.Fprintf(&back, "0 %s\t%s\x00", c.before, c.path)
			rec.Source.LeftOut = noted(rec.Source.LeftOut, c.path+": git's filter "+name+" does not run")
		default:
			fmt.Fprintf(&back, "%s %s\t%s\x00", c.mode, c.before, c.path)
			rec.Source.LeftOut = noted(rec.Source.LeftOut, c.path+": git's filter "+name+" does not run")
		}
	}
	if back.Len() == 0 {
		return nil
	}
	_, err = d.git(ctx, strings.NewReader(back.String()), nil, "update-index", "-z", "--index-info")
	return err
}

// filters are the names of the filters that changed files have.
func (d *desk) filters(ctx context.Context, changes []change) (map[string]string, error) {
	if len(d.at.filters) == 0 && !slices.ContainsFunc(changes, func(c change) bool { return c.kind == "M" }) {
		return nil, nil
	}
	var names strings.Builder
	for _, c := range changes {
		if c.mode != gitlink {
			names.WriteString(c.path + "\x00")
		}
	}
	if names.Len() == 0 {
		return nil, nil
	}
	out, err := d.git(ctx, strings.NewReader(names.String()), nil, "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for f := strings.Split(out, "\x00"); len(f) >= 3; f = f[3:] {
		if f[2] != "unspecified" && f[2] != "unset" && f[2] != "set" {
			all[f[0]] = f[2]
		}
	}
	return all, nil
}

// changes are the files that the base has with other content, or has not.
func (d *desk) changes(ctx context.Context) (all []change, err error) {
	out, err := d.git(ctx, nil, nil, "diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", "--diff-filter=AM", d.base)
	if err != nil {
		return nil, err
	}
	for f := strings.Split(out, "\x00"); len(f) >= 2; f = f[2:] {
		if w := strings.Fields(f[0]); len(w) == 5 {
			all = append(all, change{w[4], w[1], w[2], w[3], f[1]})
		}
	}
	return all, nil
}

// maxPointer is how long a pointer of LFS may be.
const maxPointer = 1024

// pointed reports whether the new content is what the old, a pointer, points to.
func (d *desk) pointed(ctx context.Context, c change) (bool, error) {
	if c.kind != "M" {
		return false, nil
	}
	size, err := d.git(ctx, nil, nil, "cat-file", "-s", c.before)
	if err != nil || len(strings.TrimSpace(size)) > 4 {
		return false, err
	}
	text, err := d.git(ctx, nil, nil, "cat-file", "blob", c.before)
	if err != nil || len(text) > maxPointer || !strings.HasPrefix(text, "version https://git-lfs.github.com/spec/") {
		return false, err
	}
	sum := sha256.New()
	if _, err := d.git(ctx, nil, sum, "cat-file", "blob", c.after); err != nil {
		return false, err
	}
	return strings.Contains(text, "\noid sha256:"+hex.EncodeToString(sum.Sum(nil))+"\n"), nil
}
