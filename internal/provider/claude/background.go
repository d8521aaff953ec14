package claude

import (
	"context"
	"slices"
	"strconv"
	"sync"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/internal/provider"
)

// maxCommands bounds the shell commands whose lines are remembered until the CLI says that
// one of them goes on in the background, and those that do.
const maxCommands = 256

// leftRunning are the shell commands that the CLI runs in the background. The reader keeps
// it, because they also end while no turn listens.
type leftRunning struct {
	mu    sync.Mutex
	lines map[string]string // of the newest commands, by the ids of their calls
	order []string
	tasks []leftCommand
	count int
}

// leftCommand is one of them. The contract numbers them; the CLI has names.
type leftCommand struct {
	number int
	task   string
	item   thole.ItemID
	line   string
}

// over are the states in which a task has ended.
var over = []string{"completed", "failed", "killed", "stopped"}

// see takes in a message of the CLI.
func (l *leftRunning) see(m *message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case m.Type == "assistant" && m.Message != nil:
		for _, b := range m.Message.blocks() {
			if b.Type == "tool_use" && b.Name == "Bash" {
				l.remember(b.ID, stringField(b.Input, "command"))
			}
		}
	case m.Type != "system":
	case m.Subtype == "task_started" && m.TaskType == "local_bash" && len(l.tasks) < maxCommands:
		l.count++
		l.tasks = append(l.tasks, leftCommand{number: l.count, task: m.TaskID, line: l.lines[m.ToolUseID]})
	case m.Subtype == "task_notification", m.Subtype == "task_updated" && m.Patch != nil && slices.Contains(over, m.Patch.Status):
		l.drop(m.TaskID)
	}
}

func (l *leftRunning) remember(call, line string) {
	if l.lines == nil {
		l.lines = map[string]string{}
	}
	if _, again := l.lines[call]; !again {
		l.order = append(l.order, call)
	}
	if l.lines[call] = line; len(l.order) > maxCommands {
		delete(l.lines, l.order[0])
		l.order = l.order[1:]
	}
}

func (l *leftRunning) drop(task string) {
	l.tasks = slices.DeleteFunc(l.tasks, func(c leftCommand) bool { return c.task == task })
}

// began says which item a task became.
func (l *leftRunning) began(task string, item thole.ItemID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.tasks {
		if l.tasks[i].task == task {
			l.tasks[i].item = item
		}
	}
}

func (l *leftRunning) all() []leftCommand {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.tasks)
}

// Background implements provider.Background. The CLI is asked something first: its answer
// comes after what it said before, of commands that ended without a turn.
func (s *session) Background(ctx context.Context) ([]provider.BackgroundCommand, error) {
	c, err := s.Present()
	if err != nil || len(c.left.all()) == 0 {
		return nil, nil //nolint:nilerr // without a process nothing of it runs either
	}
	if err := c.query(ctx, "mcp_status", nil, nil); err != nil {
		return nil, err
	}
	var out []provider.BackgroundCommand
	for _, l := range c.left.all() {
		out = append(out, provider.BackgroundCommand{ID: strconv.Itoa(l.number), Item: l.item, Line: l.line, Dir: s.Cfg.Dir})
	}
	return out, nil
}

// EndBackground implements provider.Background.
func (s *session) EndBackground(ctx context.Context, id string) (bool, error) {
	c, err := s.Present()
	if err != nil {
		return false, nil //nolint:nilerr // nothing of it runs either
	}
	ended := id == ""
	for _, l := range c.left.all() {
		if id != "" && id != strconv.Itoa(l.number) {
			continue
		}
		err := c.query(ctx, "stop_task", map[string]any{"task_id": l.task}, nil)
		switch thole.CodeOf(err) {
		case "":
			ended = true
		case thole.CodeUnsupported: // it has ended by itself
		default:
			return false, err
		}
		c.left.mu.Lock()
		c.left.drop(l.task)
		c.left.mu.Unlock()
	}
	return ended, nil
}
