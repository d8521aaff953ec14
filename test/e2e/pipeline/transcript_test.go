package pipeline

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

// transcript reads, from the agent's own files next to a workspace, every message of
// the user that the agent recorded and every message of its own. It knows nothing
// of thole's records.
func transcript(t *testing.T, workspace string) (asked, said []string) {
	t.Helper()
	take := func(role, text string) {
		switch role {
		case "user":
			asked = append(asked, text)
		case "assistant":
			said = append(said, text)
		}
	}
	err := filepath.WalkDir(filepath.Join(filepath.Dir(workspace), "data"), func(path string, d fs.DirEntry, err error) error {
		name := filepath.Base(path)
		switch {
		case err != nil || d.IsDir():
			return err
		case strings.HasPrefix(name, "rollout-") && strings.HasSuffix(name, ".jsonl"):
			return eachLine(path, func(line []byte) {
				var l struct {
					Type    string
					Payload struct {
						Type, Role string
						Content    []struct{ Text string }
					}
				}
				if json.Unmarshal(line, &l) == nil && l.Type == "response_item" && l.Payload.Type == "message" {
					for _, c := range l.Payload.Content {
						take(l.Payload.Role, c.Text)
					}
				}
			})
		case strings.HasSuffix(name, ".jsonl") && strings.Contains(path, "/projects/"):
			return eachLine(path, func(line []byte) {
				var l struct {
					Type    string
					Message struct {
						Role    string
						Content []struct{ Type, Text string }
					}
				}
				if json.Unmarshal(line, &l) == nil && (l.Type == "user" || l.Type == "assistant") { // other lines repeat requests
					for _, c := range l.Message.Content {
						if c.Type == "text" {
							take(l.Message.Role, c.Text)
						}
					}
				}
			})
		case name == "opencode.db":
			return eachPart(path, take)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return asked, said
}

func eachLine(path string, do func([]byte)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		do(lines.Bytes())
	}
	return lines.Err()
}

func eachPart(path string, take func(role, text string)) (err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Query(`select m.data ->> 'role', p.data ->> 'text' from part p join message m on m.id = p.message_id where p.data ->> 'type' = 'text' order by p.id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var role, text string
		if err := rows.Scan(&role, &text); err != nil {
			return err
		}
		take(role, text)
	}
	return rows.Err()
}

// holding counts the texts that hold a marker.
func holding(texts []string, marker string) (n int) {
	for _, text := range texts {
		if strings.Contains(text, marker) {
			n++
		}
	}
	return n
}
