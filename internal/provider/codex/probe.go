package codex

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tholehq/thole/internal/process"
	"github.com/tholehq/thole/internal/provider"
)

// sandboxLimit bounds the trial of codex's sandbox.
const sandboxLimit = 30 * time.Second

func (p *Provider) tested(_ provider.Version, text string) (provider.Capabilities, bool) {
	if p.execOnly() {
		return execCapabilities(), text == Pinned
	}
	return measured(), text == Pinned
}

// ask learns what a version can do from the protocol it describes. One without a
// protocol that we can use may still have the fallback.
func (p *Provider) ask(ctx context.Context, info *provider.Info) error {
	var err error
	if !p.execOnly() {
		if info.Capabilities, err = p.described(ctx, info.Binary); err == nil {
			return nil
		}
		help, herr := p.Binary.Say(ctx, info.Binary, "exec", "--help")
		if herr != nil || !strings.Contains(help, "--json") {
			return fmt.Errorf("no app-server: %w", err)
		}
		info.Problem += fmt.Sprintf("; it has no app-server (%v), so codex exec is used", err)
		p.mu.Lock()
		p.exec = true
		p.mu.Unlock()
	}
	info.Capabilities = execCapabilities()
	return nil
}

// sandboxWorks runs a command in codex's own sandbox, once for each home:
// containers that deny user namespaces break it, and so does a home below the
// temporary directory, where codex refuses to put its helpers.
func (p *Provider) sandboxWorks(ctx context.Context, binary string, env map[string]string) bool {
	home := env["CODEX_HOME"]
	p.mu.Lock()
	works, known := p.sandbox[home]
	p.mu.Unlock()
	if known {
		return works
	}
	proc, err := process.Start(process.Spec{Path: binary, Args: []string{"sandbox", "true"}, Dir: home, Env: env})
	if err != nil {
		return false
	}
	limit, cancel := context.WithTimeout(ctx, sandboxLimit)
	defer cancel()
	proc.Stdin.Close()
	works = proc.Wait(limit) == nil
	proc.Kill()
	proc.Stdout.Close()
	if ctx.Err() == nil { // else the caller gave up and nothing was learnt
		p.mu.Lock()
		p.sandbox[home] = works
		p.mu.Unlock()
	}
	return works
}

// described reads a version's own description of its protocol.
func (p *Provider) described(ctx context.Context, binary string) (none provider.Capabilities, err error) {
	dir, err := os.MkdirTemp("", "thole-probe-")
	if err != nil {
		return none, err
	}
	defer os.RemoveAll(dir)
	if _, err := p.Binary.Say(ctx, binary, "app-server", "generate-json-schema", "--experimental", "--out", dir); err != nil {
		return none, err
	}
	var schema strings.Builder
	for _, f := range []string{"ClientRequest", "ServerRequest", "ServerNotification"} {
		raw, err := os.ReadFile(filepath.Join(dir, f+".json"))
		if err != nil {
			return none, err
		}
		schema.Write(raw)
	}
	has := func(method string) bool { return strings.Contains(schema.String(), `"`+method+`"`) }
	for _, needed := range []string{"thread/start", "turn/start", "turn/interrupt", "item/started", "item/completed", "turn/completed"} {
		if !has(needed) {
			return none, fmt.Errorf("its protocol has no %s", needed)
		}
	}
	return capabilities(has), nil
}
