package claude

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"

	thole "github.com/tholehq/thole"
	"github.com/tholehq/thole/event"
	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/strictjson"
)

// todoList is the agent's list. It outlives turns: an update names an entry by
// number only. Deleted entries stay, as canceled.
type todoList struct {
	session string
	todos   []event.Todo
	native  []string // the CLI's task number of todos[i]; "" for TodoWrite entries
}

// taskState maps the CLI's word; an unknown one means the entry is still to do.
func taskState(word string) event.TodoState {
	switch word {
	case "in_progress":
		return event.TodoDoing
	case "completed":
		return event.TodoDone
	case "deleted":
		return event.TodoCanceled
	}
	return event.TodoPending
}

// maxTasks bounds the list that is read.
const maxTasks = 1000

// load reads the list a former process left on disk.
func (l *todoList) load(cfg provider.SessionConfig) {
	files, err := base.OpenFiles(cfg, configDir(cfg))
	if err != nil {
		return
	}
	defer files.Close()
	for n := 1; n <= maxTasks; n++ {
		raw, err := files.Read(path.Join("tasks", l.session, strconv.Itoa(n)+".json"))
		if err != nil {
			return
		}
		var t nativeTask
		if strictjson.Unmarshal(raw, &t) == nil && t.ID != "" && l.find(t.ID) == nil {
			l.add(t.ID, t.Subject, taskState(t.Status))
		}
	}
}

func (l *todoList) add(native, content string, state event.TodoState) event.Todo {
	key := native
	if key == "" {
		key = "line " + strconv.Itoa(len(l.todos))
	}
	t := event.Todo{ID: provider.StableID[thole.TodoID](name, "todo", l.session, key), Content: content, State: state, Order: len(l.todos)}
	l.todos, l.native = append(l.todos, t), append(l.native, native)
	return t
}

func (l *todoList) find(native string) *event.Todo {
	for i, n := range l.native {
		if n != "" && n == native {
			return &l.todos[i]
		}
	}
	return nil
}

// todoResult reads the list tools. Results of parallel calls come out of order,
// so the call's own input and result count, never the order.
func (d *decoder) todoResult(t *toolItem, structured json.RawMessage) {
	if t.item.Parent != "" {
		return // a sub-agent's list is its own
	}
	switch t.name {
	case "TodoWrite":
		d.todoWrite(t.input)
	case "TaskCreate":
		var r struct {
			Task nativeTask `json:"task"`
		}
		if strictjson.Unmarshal(structured, &r) != nil || r.Task.ID == "" || d.todos.find(r.Task.ID) != nil {
			return
		}
		d.em.Todo(d.todos.add(r.Task.ID, r.Task.Subject, event.TodoPending))
	case "TaskUpdate":
		var in struct {
			TaskID  string `json:"taskId"`
			Status  string `json:"status"`
			Subject string `json:"subject"`
		}
		_ = strictjson.Unmarshal(t.input, &in)
		todo := d.todos.find(in.TaskID)
		if todo == nil {
			return
		}
		if in.Status != "" {
			todo.State = taskState(in.Status)
		}
		if in.Subject != "" {
			todo.Content = in.Subject
		}
		d.em.Todo(*todo)
	case "TaskList":
		d.taskList(structured)
	}
}

// nativeTask is an entry of the CLI's own list.
type nativeTask struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	Status  string `json:"status"`
}

func (d *decoder) todoWrite(input json.RawMessage) {
	var in struct {
		Todos []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"todos"`
	}
	if strictjson.Unmarshal(input, &in) != nil {
		return
	}
	d.todos.todos, d.todos.native = nil, nil
	for _, t := range in.Todos {
		d.todos.add("", t.Content, taskState(t.Status))
	}
	d.em.Todos(slices.Clone(d.todos.todos))
}

// taskList brings in entries of former processes and corrects the known ones.
func (d *decoder) taskList(structured json.RawMessage) {
	var r struct {
		Tasks []nativeTask `json:"tasks"`
	}
	if strictjson.Unmarshal(structured, &r) != nil {
		return
	}
	for _, t := range r.Tasks {
		if known := d.todos.find(t.ID); known != nil {
			known.State, known.Content = taskState(t.Status), t.Subject
		} else {
			d.todos.add(t.ID, t.Subject, taskState(t.Status))
		}
	}
	d.em.Todos(slices.Clone(d.todos.todos))
}
