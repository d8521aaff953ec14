package executord

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tholehq/thole/internal/provider"
	"github.com/tholehq/thole/internal/provider/base"
	"github.com/tholehq/thole/internal/provider/ownconfig"
)

// projectTexts are the directories whose instructions a session gets although settings
// there do not count, the top first; none where they count anyway. Agents write in them:
// what is taken is text for the model, within bounds, and nothing that leads elsewhere.
type projectTexts []string

const (
	maxText   = 64 << 10 // of one file of instructions
	maxSkills = 200
)

// projectOf are the directories from the top of a thread's files to where its agent works.
func projectOf(top, dir string) (all projectTexts) {
	for {
		all = append(all, dir)
		rel, err := filepath.Rel(top, dir)
		if err != nil || rel == "." || !filepath.IsLocal(rel) {
			break
		}
		dir = filepath.Dir(dir)
	}
	slices.Reverse(all)
	return all
}

// after is what follows a file of settings.
func (p projectTexts) after(s provider.Setting) (text []byte) {
	for _, dir := range p {
		if s.Tail != "" {
			text = append(text, "\n"+strings.ReplaceAll(s.Tail, provider.DirPlace, dir)...)
		}
		files, err := openProject(dir)
		if err != nil {
			continue
		}
		for _, name := range s.Texts {
			body, err := files.Read(name)
			if err != nil || len(body) > maxText {
				continue
			}
			text = append(text, "\n\n# "+filepath.Join(dir, name)+"\n\n"...)
			text = append(text, body...)
			break
		}
		files.Close()
	}
	return text
}

// skills are those of the project in a form that runs nothing: the file says where the
// agent finds the rest.
func (p projectTexts) skills(in []string) map[string][]byte {
	all := map[string][]byte{}
	for _, dir := range p {
		if len(in) == 0 {
			break
		}
		files, err := openProject(dir)
		if err != nil {
			continue
		}
		for _, below := range in {
			entries, _ := fs.ReadDir(files.FS(), below)
			for _, e := range entries[:min(len(entries), maxSkills)] {
				name := path.Join(below, e.Name(), "SKILL.md")
				body, err := files.Read(name)
				if err != nil || len(body) > maxText {
					continue
				}
				all[path.Join(e.Name(), "SKILL.md")] = ownconfig.Pointer(body, filepath.Join(dir, name))
			}
		}
		files.Close()
	}
	return all
}

func openProject(dir string) (*base.Files, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &base.Files{Root: root}, nil
}
