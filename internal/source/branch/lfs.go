package branch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Files that LFS keeps elsewhere are pointers in a commit and content in a working tree.
// The content of those that a user changed is carried; of the others the pointer stays.

// change is an entry of the desk's index that differs from the base.
type change struct{ mode, before, after, path string }

// unchanged puts the pointers of files back that are what their pointer says. Git takes
// them for changed where its index is as old as they are, as after a clone.
func (d *desk) unchanged(ctx context.Context) error {
	changes, err := d.changes(ctx)
	if err != nil || len(changes) == 0 {
		return err
	}
	var names strings.Builder
	for _, c := range changes {
		names.WriteString(c.path + "\x00")
	}
	out, err := d.git(ctx, strings.NewReader(names.String()), nil, "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return err
	}
	lfs := map[string]bool{}
	for f := strings.Split(out, "\x00"); len(f) >= 3; f = f[3:] {
		lfs[f[0]] = f[2] == "lfs"
	}
	var back strings.Builder
	for _, c := range changes {
		if !lfs[c.path] {
			continue
		}
		same, err := d.pointed(ctx, c)
		if err != nil {
			return err
		}
		if same {
			fmt.Fprintf(&back, "%s %s\t%s\x00", c.mode, c.before, c.path)
		}
	}
	if back.Len() == 0 {
		return nil
	}
	_, err = d.git(ctx, strings.NewReader(back.String()), nil, "update-index", "-z", "--index-info")
	return err
}

// changes are the files that the base has too, with other content.
func (d *desk) changes(ctx context.Context) (all []change, err error) {
	out, err := d.git(ctx, nil, nil, "diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", "--diff-filter=M", d.base)
	if err != nil {
		return nil, err
	}
	for f := strings.Split(out, "\x00"); len(f) >= 2; f = f[2:] {
		if w := strings.Fields(f[0]); len(w) == 5 {
			all = append(all, change{w[1], w[2], w[3], f[1]})
		}
	}
	return all, nil
}

// maxPointer is how long a pointer of LFS may be.
const maxPointer = 1024

// pointed reports whether the new content is what the old, a pointer, points to.
func (d *desk) pointed(ctx context.Context, c change) (bool, error) {
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
