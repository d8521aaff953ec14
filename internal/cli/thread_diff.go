package cli

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/changes"
	"github.com/tholehq/thole/internal/platform/view"
)

func newThreadDiff(env *Env) *cobra.Command {
	var p changes.DiffParams
	var stat, names bool
	cmd := &cobra.Command{
		Use: "diff THREAD [PATH]", Short: "Show how a thread's files changed",
		Long: "Compares the thread's files as they are now with those it began with, new files included, or with --turn what one\n" +
			"turn made of them. It works while a turn runs. What git would ignore is left out. Written to a file or to another\n" +
			"program, the patch is byte for byte what git apply takes; on a terminal control characters are made visible.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Thread = thole.ThreadID(args[0])
			if len(args) == 2 {
				p.Path = []byte(args[1])
			}
			if !stat && !names && !env.JSON {
				return env.patch(cmd.Context(), p)
			}
			p.Patches = env.JSON && !stat && !names
			var c view.Changes
			if err := env.ask(cmd.Context(), changes.MethodDiff, p, &c); err != nil {
				return err
			}
			return env.print(c, func(w io.Writer) {
				if names {
					for _, f := range c.Files {
						putln(w, fileName(f))
					}
				} else {
					printStat(w, c)
				}
				if more := c.Total - len(c.Files); more > 0 {
					putf(env.Err, "thole: %s not listed; name a directory to see more\n", count(more, "changed file"))
				}
				for _, left := range c.LeftOut {
					putln(env.Err, "thole: left out:", left)
				}
			})
		},
	}
	cmd.Flags().IntVar(&p.Turn, "turn", 0, "what this turn changed, by its number")
	cmd.Flags().BoolVar(&stat, "stat", false, "files and numbers of lines only")
	cmd.Flags().BoolVar(&names, "name-only", false, "names of files only")
	cmd.Flags().IntVarP(&p.Context, "unified", "U", 3, "lines around each change")
	exclude(cmd, "stat", "name-only")
	return cmd
}

// patch writes a patch as it comes.
func (e *Env) patch(ctx context.Context, p changes.DiffParams) error {
	n, err := e.download(ctx, p.Thread, func(id thole.ThreadID) string { return changes.PatchPath(id) + "?" + changes.PatchQuery(p) }, "patch")
	if err != nil {
		return err
	}
	if n == 0 && len(p.Path) > 0 {
		putf(e.Err, "thole: nothing changed in %s\n", string(p.Path))
	}
	return nil
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	return err == nil
}

// fileName is a file's path on one line, quoted where it would not be one.
func fileName(f view.ChangedFile) string {
	name := f.Path
	if len(f.PathBytes) > 0 {
		name = string(f.PathBytes)
	}
	if len(f.PathBytes) > 0 || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

func printStat(w io.Writer, c view.Changes) {
	t := newTable(w)
	for _, f := range c.Files {
		printChanged(t, f)
	}
	_ = t.Flush()
	putf(w, "%s changed, %s added, %d removed\n", count(c.Total, "file"), count(c.Added, "line"), c.Removed)
}

// printChanged writes one line of a table about a file.
func printChanged(w io.Writer, f view.ChangedFile) {
	lines := "+" + strconv.Itoa(f.Added) + " -" + strconv.Itoa(f.Removed)
	if f.Binary {
		lines = "binary"
	}
	name := fileName(f)
	if f.OldPath != "" {
		name = fileName(view.ChangedFile{Path: f.OldPath}) + " → " + name
	}
	what := f.Kind
	if f.OldMode != "" && f.Mode != "" && f.Kind != "type" {
		what += ", mode " + f.OldMode + " → " + f.Mode
	}
	putf(w, "%s\t%s\t%s\n", name, lines, what)
}
