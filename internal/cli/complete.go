package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/client/appclient"
	"github.com/tholehq/thole/internal/daemon"
	"github.com/tholehq/thole/internal/daemon/daemonclient"
	"github.com/tholehq/thole/internal/daemon/wire"
	"github.com/tholehq/thole/internal/version"
	"github.com/tholehq/thole/protocol/app"
)

// completeFlags offers a shell the values of flags that have few.
func completeFlags(env *Env, cmd *cobra.Command) {
	fixed := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	profiles := fixed(string(thole.ProfilePlan)+"\tread and plan, change nothing", string(thole.ProfileAsk)+"\task before commands and edits",
		string(thole.ProfileEdit)+"\tedit without asking", string(thole.ProfileFull)+"\task for nothing")
	for name, complete := range map[string]cobra.CompletionFunc{
		"profile":  profiles,
		"decision": fixed("allow", "always", "deny", "cancel"),
		"network":  fixed("none", "gateway", "list", "open"),
		"status":   fixed(string(thole.JobRunning), string(thole.JobReady), string(thole.JobFailed), string(thole.JobCancelled)),
		"model": func(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
			return env.completeModels(cmd.Context(), text)
		},
		"thread": threadValues(env), "thread-id": threadValues(env), "source-thread-id": threadValues(env),
		"job-id": jobValues(env), "batch-id": batchValues(env),
	} {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, complete) // a command's own stays
		}
	}
	completeArgument(env, cmd)
	if cmd.CommandPath() == "thole batch close-head" {
		_ = cmd.RegisterFlagCompletionFunc("reason", fixed(closeReasons()...))
	}
	for _, sub := range cmd.Commands() {
		completeFlags(env, sub)
	}
}

// completeArgument offers a shell what the first word after a command may be, by its name in
// the usage line.
func completeArgument(env *Env, cmd *cobra.Command) {
	words := strings.Fields(cmd.Use)
	if len(words) < 2 || cmd.ValidArgsFunction != nil {
		return
	}
	complete := map[string]cobra.CompletionFunc{"JOB": jobValues(env), "BATCH": batchValues(env), "THREAD": threadValues(env), "ROLE": roleValues}[strings.Trim(words[1], "[]…")]
	if complete == nil {
		return
	}
	many := strings.HasSuffix(words[1], "…")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, given []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(given) > 0 && !many {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return complete(cmd, given, text)
	}
}

// closeReasons are those that a person may close a batch with.
func closeReasons() []string {
	return []string{
		string(thole.CloseOperatorUnconfirmed) + "\tit may or may not have arrived", string(thole.CloseOperatorConfirmed) + "\tit has arrived",
		string(thole.CloseCancelled) + "\tit is not wanted any more",
	}
}

func threadValues(env *Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		return env.completeThreads(cmd.Context(), text)
	}
}

// values asks an owner that is there; a completion starts nothing.
func values[T any](env *Env, ctx context.Context, method string, params any, line func(T) string) ([]string, cobra.ShellCompDirective) {
	home, err := env.home()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []T
	_ = (&daemonclient.Client{Home: home, NoStart: true}).Call(ctx, method, params, &list) // without an owner there is none
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = line(v)
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func jobValues(env *Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return values(env, cmd.Context(), wire.JobList, wire.JobListParams{Limit: 50}, func(j wire.Job) string {
			return j.JobID + "\t" + oneLine(j.Status+", "+j.TaskSummary, 60)
		})
	}
}

func batchValues(env *Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return values(env, cmd.Context(), wire.BatchList, wire.BatchListParams{Limit: 50}, func(b wire.Batch) string {
			return b.BatchID + "\t" + oneLine(batchStatus(b)+", "+b.Summary, 60)
		})
	}
}

// completeModels are the models that the owner offers.
func (e *Env) completeModels(ctx context.Context, text string) ([]string, cobra.ShellCompDirective) {
	models, _ := e.models(ctx)
	var out []string
	for _, m := range models {
		if strings.HasPrefix(m.Model, text) {
			out = append(out, m.Model+"\t"+oneLine(m.DisplayName, 60))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// models are what a running owner offers; it is not started for that.
func (e *Env) models(ctx context.Context) ([]app.Model, error) {
	home, err := e.home()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := appclient.Dial(ctx, "unix://"+daemon.Socket(home), appclient.Options{Name: "thole-cli", Version: version.Version, Experimental: true, Extended: true})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var list app.ModelListResult
	err = c.Call(ctx, "model/list", app.ModelListParams{}, &list)
	return list.Data, err
}
