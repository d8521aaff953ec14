package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// encoding/json takes members in other letters of case and the last of several, so
// what comes from outside is read by strictjson. These read what we wrote ourselves,
// or are no part of the program.
var readsOwn = []string{
	"internal/strictjson/", "internal/store/", "internal/modelsim/", "internal/testkit/", "internal/provider/providertest/",
	"internal/provider/testprovider/", "internal/thread/decide_usurp.go", "internal/cli/job_run.go", "internal/cli/shape.go",
	"internal/provider/loginfile.go", // which keeps numbers as they are written; it looks for members that stand twice itself
	"internal/workspace/decode.go",   // which reads a list member by member, each with strictjson, and looks for members that stand twice itself
	"internal/execserver/params.go", "protocol/", "scripts/", "test/",
}

var readsJSON = regexp.MustCompile(`\b(json\.(Unmarshal|NewDecoder))\(`)

func TestWhatComesFromOutsideIsReadByExactNames(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && rel != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		for _, own := range readsOwn {
			if strings.HasPrefix(rel, own) {
				return nil
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		if call := readsJSON.FindSubmatch(text); call != nil {
			t.Errorf("%s calls %s; use strictjson, which knows members by their exact names", rel, call[1])
		}
		return nil
	})
	if err != nil || read < 100 {
		t.Fatalf("%d files read, %v", read, err)
	}
}
