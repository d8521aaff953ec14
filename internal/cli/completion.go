package cli

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
)

// bashWords splits a command line at blanks, as the package bash-completion does, for a bash
// without it: bash itself splits at = and : too.
const bashWords = `
__thole_words()
{
    local rest=$COMP_LINE word gap i
    words=() cword=0
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]} gap=
        while [[ $rest == [[:blank:]]* ]]; do rest=${rest:1} gap=1; done
        rest=${rest#"$word"}
        if [[ $i == 0 || -n $gap ]]; then
            words+=("$word")
        else
            words[${#words[@]} - 1]+=$word
        fi
        ((i == COMP_CWORD)) && cword=$((${#words[@]} - 1))
    done
    cur=${words[cword]} prev=
    ((cword == 0)) || prev=${words[cword - 1]}
}
`

// bashInit is the line of cobra's script that needs the package.
const bashInit = `    _get_comp_words_by_ref "$@" cur prev words cword
`

// completion adds the command that prints completion scripts. The one for bash also works
// where the package bash-completion is not installed.
func completion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || cmd.Name() != "bash" {
		return
	}
	cmd.Long = "Print the completion script for bash.\n\nThis shell alone: source <(thole completion bash)\nEvery new one: thole completion bash > ~/.local/share/bash-completion/completions/thole, or the line above in ~/.bashrc"
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		plain, _ := cmd.Flags().GetBool("no-descriptions")
		var out bytes.Buffer
		if err := root.GenBashCompletionV2(&out, !plain); err != nil {
			return err
		}
		script := strings.Replace(out.String(), bashInit, `    if declare -F _get_comp_words_by_ref >/dev/null; then
    `+bashInit+`    else
        __thole_words
    fi
`, 1) + bashWords
		if _, err := cmd.OutOrStdout().Write([]byte(script)); err != nil {
			return thole.Errorf(thole.CodeUnavailable, "write output: %w", err)
		}
		return nil
	}
}
