package codex_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/codex"
)

// A codex that reports a failure because it was interrupted: the turn was
// interrupted.
func TestInterruptReportedAsAFailure(t *testing.T) {
	const script = `#!/bin/bash
while read -r line; do
	case $line in
	*'"method":"initialize"'*) echo '{"id":1,"result":{"userAgent":"x"}}' ;;
	*'"method":"thread/start"'*) echo '{"id":2,"result":{"thread":{"id":"t"},"model":"m"}}' ;;
	*'"method":"turn/start"'*)
		echo '{"id":3,"result":{"turn":{"id":"u","status":"inProgress"}}}'
		echo '{"method":"item/started","params":{"threadId":"t","turnId":"u","item":{"type":"agentMessage","id":"i"}}}' ;;
	*'"method":"turn/interrupt"'*)
		echo '{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"failed","error":{"message":"stream disconnected"}}}}' ;;
	*'"method":"thread/backgroundTerminals/clean"'*) echo '{"id":5,"result":{}}' ;;
	esac
done
`
	binary := filepath.Join(t.TempDir(), "codex")
	if err := os.WriteFile(binary, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := codex.New(binary).Open(context.Background(), provider.SessionConfig{Thread: "t", Dir: t.TempDir(), Data: t.TempDir(), Settings: event.Settings{Profile: thole.ProfileFull}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	begun := make(chan struct{})
	go func() {
		<-begun
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var ended provider.Ended
	err = s.Run(context.Background(), provider.Turn{ID: "turn", Input: thole.Text("hello")}, func(e event.Event) {
		switch e.Kind {
		case event.ItemStarted:
			close(begun)
		case event.TurnEnded:
			ended = provider.EndedOf(e)
		}
	})
	if err != nil || ended.Outcome != thole.OutcomeInterrupted || ended.Error != nil {
		t.Errorf("%v, %+v", err, ended)
	}
}
