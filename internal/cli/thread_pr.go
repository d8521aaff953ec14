package cli

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/daemon/changes"
	"github.com/tholehq/thole/internal/forge"
	"github.com/tholehq/thole/internal/platform/view"
)

func newThreadPR(env *Env) *cobra.Command {
	var push changes.PushParams
	var p changes.PullRequestParams
	cmd := &cobra.Command{
		Use: "pr THREAD", Short: "Push a thread's work and open a pull request for it",
		Long: "At GitHub, GitLab, Gitea and Forgejo. The branch is pushed as thole thread push does it. The token is the first of: GH_TOKEN or\n" +
			"GITHUB_TOKEN (of github.com), GITLAB_TOKEN (of gitlab.com or GITLAB_HOST); what gh has; what your git credential helper has; the secret of kind git\n" +
			"that was set for that server. A request that is open already is shown, and has what was pushed.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			push.Thread = thole.ThreadID(args[0])
			r, err := env.push(cmd.Context(), push, func(remote string) error {
				_, _, err := forge.Server(remote) // what cannot become a request is not pushed either
				return err
			})
			if err != nil {
				return err
			}
			p.Thread, p.Remote, p.Branch = push.Thread, r.Remote, r.Branch
			p.Token = forgeToken(cmd.Context(), r.Remote)
			var opened view.PullRequest
			if err := env.ask(cmd.Context(), changes.MethodPullRequest, p, &opened); err != nil {
				return err
			}
			return env.print(opened, func(w io.Writer) {
				if opened.Existing {
					putf(w, "it was open already, for %s\n", opened.Base)
				}
				putln(w, opened.URL)
			})
		},
	}
	cmd.Flags().StringVar(&push.Remote, "remote", "", "address of the repository")
	cmd.Flags().StringVar(&push.As, "as", "", "another name for the branch")
	cmd.Flags().BoolVar(&push.Force, "force", false, "also where the branch there has commits that would be lost")
	cmd.Flags().StringVar(&p.Base, "base", "", "branch that the request is for; the repository's default without it")
	cmd.Flags().StringVar(&p.Title, "title", "", "title; the thread's name without it")
	cmd.Flags().StringVar(&p.Body, "body", "", "text; what was asked and what the agent said last without it")
	cmd.Flags().BoolVar(&p.Draft, "draft", false, "as a draft")
	return cmd
}

// helperTime bounds a program that may know a token.
const helperTime = 10 * time.Second

// forgeToken is what the user's own programs have for the server of an address, "" for
// nothing. Nobody is asked.
func forgeToken(ctx context.Context, remote string) string {
	scheme, host, err := forge.Server(remote)
	if err != nil {
		return ""
	}
	for _, one := range []struct{ host, variable string }{
		{"github.com", "GH_TOKEN"}, {"github.com", "GITHUB_TOKEN"}, {os.Getenv("GH_HOST"), "GH_ENTERPRISE_TOKEN"}, {os.Getenv("GH_HOST"), "GITHUB_ENTERPRISE_TOKEN"},
		{cmp.Or(os.Getenv("GITLAB_HOST"), "gitlab.com"), "GITLAB_TOKEN"},
	} {
		if v := os.Getenv(one.variable); v != "" && one.host == host {
			return v
		}
	}
	ctx, cancel := context.WithTimeout(ctx, helperTime)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "gh", "auth", "token", "--hostname", host).Output(); err == nil {
		if token := strings.TrimSpace(string(out)); token != "" {
			return token
		}
	}
	fill := exec.CommandContext(ctx, "git", "credential", "fill")
	fill.Dir = os.TempDir() // where no repository's configuration counts
	fill.Env = append(ownGit(os.Environ()), "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS=true", "GCM_INTERACTIVE=never", "GIT_CEILING_DIRECTORIES="+os.TempDir())
	fill.Stdin = strings.NewReader("protocol=" + scheme + "\nhost=" + host + "\n\n")
	out, err := fill.Output()
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(out) {
		if token, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "password="); ok {
			return token
		}
	}
	return ""
}
