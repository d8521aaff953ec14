package executord

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/strictjson"
	"github.com/tholehq/thole/internal/workspace/beneath"
)

// recipe is how a repository wants its workspace set up.
type recipe struct {
	file string // of the repository
	line string // for the shell, "" for none
	ours bool   // it was written for thole
}

// maxRecipe bounds a file of settings.
const maxRecipe = 256 << 10

// findRecipe looks for the first of: thole's own script, the commands of a dev container,
// the versions of mise. Everything is read as data of a stranger; only the box runs it.
func findRecipe(workspace string) (recipe, error) {
	root, err := beneath.Trusted(workspace)
	if err != nil {
		return recipe{}, err
	}
	defer root.Close()
	if st, err := lstat(root, ".thole/setup"); err == nil && st.Kind != beneath.Folder {
		line := "sh .thole/setup"
		if st.Kind == beneath.File && st.Mode&0o111 != 0 {
			line = "./.thole/setup"
		}
		return recipe{".thole/setup", line, true}, nil
	}
	for _, file := range []string{".devcontainer/devcontainer.json", ".devcontainer.json"} {
		text, err := read(root, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		line := ""
		if err == nil {
			line, err = devcontainer(text, workspace)
		}
		if err != nil {
			return recipe{file: file}, fmt.Errorf("%s: %w", file, err)
		}
		if line != "" {
			return recipe{file: file, line: line}, nil
		}
	}
	if _, err := exec.LookPath("mise"); err != nil {
		return recipe{}, nil
	}
	for _, file := range []string{"mise.toml", ".mise.toml", ".config/mise.toml", ".tool-versions"} {
		if _, err := lstat(root, file); err == nil {
			return recipe{file: file, line: "mise trust --quiet && mise install"}, nil
		}
	}
	return recipe{}, nil
}

func lstat(root *beneath.Dir, path string) (beneath.Stat, error) {
	dir, name, err := root.Parent(path, false)
	if err != nil {
		return beneath.Stat{}, err
	}
	defer dir.Close()
	return dir.Lstat(name)
}

func read(root *beneath.Dir, path string) ([]byte, error) {
	dir, name, err := root.Parent(path, false)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRecipe+1))
	if err == nil && len(text) > maxRecipe {
		err = errors.New("it is too long")
	}
	return text, err
}

// devcontainer reads the commands that prepare a container, in their order: a string is
// for a shell, a list is a program with its arguments, and an object has several of these.
func devcontainer(text []byte, workspace string) (string, error) {
	var commands struct {
		OnCreate   json.RawMessage `json:"onCreateCommand"`
		Update     json.RawMessage `json:"updateContentCommand"`
		PostCreate json.RawMessage `json:"postCreateCommand"`
	}
	if err := strictjson.Unmarshal(plainJSON(text), &commands); err != nil {
		return "", err
	}
	var lines []string
	for _, raw := range []json.RawMessage{commands.OnCreate, commands.Update, commands.PostCreate} {
		more, err := commandLines(raw)
		if err != nil {
			return "", err
		}
		lines = append(lines, more...)
	}
	line := strings.Join(lines, " && ")
	return strings.NewReplacer("${containerWorkspaceFolder}", workspace, "${localWorkspaceFolder}", workspace).Replace(line), nil
}

func commandLines(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var line string
	if strictjson.Unmarshal(raw, &line) == nil {
		if strings.TrimSpace(line) == "" {
			return nil, nil
		}
		return []string{"(" + line + "\n)"}, nil
	}
	var args []string
	if strictjson.Unmarshal(raw, &args) == nil {
		if len(args) == 0 {
			return nil, nil
		}
		for i, a := range args {
			args[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		return []string{strings.Join(args, " ")}, nil
	}
	var several map[string]json.RawMessage
	if err := strictjson.Unmarshal(raw, &several); err != nil {
		return nil, errors.New("a command is neither a string, a list of strings nor an object of these")
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(several)) {
		if several[name] = json.RawMessage(strings.TrimSpace(string(several[name]))); strings.HasPrefix(string(several[name]), "{") {
			return nil, errors.New("a command is neither a string nor a list of strings")
		}
		more, err := commandLines(several[name])
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

// plainJSON takes comments and trailing commas out of JSON, as editors write it.
func plainJSON(text []byte) []byte {
	var out []byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(text))
			out = append(out, text[i:end]...)
			i = end - 1
		case c == '/' && i+1 < len(text) && text[i+1] == '/':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '/' && i+1 < len(text) && text[i+1] == '*':
			for i += 2; i < len(text) && !(text[i] == '/' && text[i-1] == '*'); i++ {
			}
		case c == '}' || c == ']':
			end := len(out)
			for end > 0 && strings.ContainsRune(" \t\r\n", rune(out[end-1])) {
				end--
			}
			if end > 0 && out[end-1] == ',' {
				out = out[:end-1]
			}
			out = append(out, c)
		default:
			out = append(out, c)
		}
	}
	return out
}
