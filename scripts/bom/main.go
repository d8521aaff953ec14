// Command bom lists what a release is made of: the Go modules that are linked
// into a binary, as Go recorded them there, and the npm packages of the web UI
// from its lock file.
//
//	bom sbom [-o FILE] [-version V] BINARY   CycloneDX 1.6, the same for the same input
//	bom web DIR                              copies the licences of the web UI's packages
//	bom check BINARY DIR                     fails if a linked module has no licence in DIR
//
// It guesses nothing: a package without a licence is an error.
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("usage: bom sbom [-o FILE] [-version V] BINARY | bom web DIR | bom check BINARY DIR")
	}
	switch args[0] {
	case "sbom":
		flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
		out := flags.String("o", "", "file to write, standard output without it")
		version := flags.String("version", "", "version of the program")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if flags.NArg() != 1 {
			return fmt.Errorf("sbom of what? name one binary")
		}
		info, err := buildinfo.ReadFile(flags.Arg(0))
		if err != nil {
			return err
		}
		packages, err := webPackages("web/package-lock.json")
		if err != nil {
			return err
		}
		doc, err := json.MarshalIndent(sbom(info, *version, packages), "", "  ")
		if err != nil {
			return err
		}
		if *out == "" {
			_, err = fmt.Println(string(doc))
			return err
		}
		return os.WriteFile(*out, append(doc, '\n'), 0o644)
	case "web":
		packages, err := webPackages("web/package-lock.json")
		if err != nil {
			return err
		}
		return copyLicenses(packages, "web", args[1])
	}
	if args[0] == "check" && len(args) == 3 {
		info, err := buildinfo.ReadFile(args[1])
		if err != nil {
			return err
		}
		return checkLicenses(info, args[2])
	}
	return fmt.Errorf("no such call: bom %s", strings.Join(args, " "))
}

// checkLicenses wants a file for each linked module: a tool that finds licences
// may not see a package that another system links.
func checkLicenses(info *debug.BuildInfo, dir string) error {
	for _, m := range info.Deps {
		if files, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(m.Path))); err != nil || len(files) == 0 {
			return fmt.Errorf("%s is linked, but no licence of it is in %s", m.Path, dir)
		}
	}
	return nil
}

type npm struct {
	Dir     string // below web: node_modules/a/node_modules/b
	Name    string
	Version string `json:"version"`
	License string `json:"license"`
	Dev     bool   `json:"dev"`
}

// webPackages are those that can end up in the built UI: none that only builds
// or tests it.
func webPackages(lock string) ([]npm, error) {
	text, err := os.ReadFile(lock)
	if err != nil {
		return nil, err
	}
	var file struct{ Packages map[string]npm }
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", lock, err)
	}
	var out []npm
	for dir, p := range file.Packages {
		if dir == "" || p.Dev {
			continue
		}
		p.Dir, p.Name = dir, dir[strings.LastIndex(dir, "node_modules/")+len("node_modules/"):]
		if p.License == "" {
			return nil, fmt.Errorf("%s: %s has no licence: find out which it has before it is released", lock, p.Name)
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s names no packages", lock)
	}
	slices.SortFunc(out, func(a, b npm) int { return cmp.Compare(a.Dir, b.Dir) })
	return out, nil
}

// copyLicenses copies the licence texts of installed packages. The few that ship
// without one get a file with the licence they name.
func copyLicenses(packages []npm, web, to string) error {
	for _, p := range packages {
		from := filepath.Join(web, p.Dir)
		entries, err := os.ReadDir(from)
		if os.IsNotExist(err) {
			continue // optional, for another platform; the SBOM still names it
		}
		if err != nil {
			return err
		}
		dir := filepath.Join(to, filepath.FromSlash(p.Name)+"@"+p.Version)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		found := false
		for _, e := range entries {
			name := strings.ToLower(e.Name())
			if e.IsDir() || !strings.HasPrefix(name, "license") && !strings.HasPrefix(name, "licence") && !strings.HasPrefix(name, "notice") && !strings.HasPrefix(name, "copying") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(from, e.Name()))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, e.Name()), text, 0o644); err != nil {
				return err
			}
			found = true
		}
		if !found {
			text := fmt.Sprintf("%s %s ships no licence text. Its licence is %s.\n", p.Name, p.Version, p.License)
			if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

type component struct {
	Type     string    `json:"type"`
	Ref      string    `json:"bom-ref,omitempty"`
	Name     string    `json:"name"`
	Version  string    `json:"version,omitempty"`
	PURL     string    `json:"purl,omitempty"`
	Licenses []license `json:"licenses,omitempty"`
}

type license struct {
	Expression string `json:"expression,omitempty"`
}

type document struct {
	Format      string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Version     int    `json:"version"`
	Metadata    struct {
		Component component `json:"component"`
	} `json:"metadata"`
	Components []component `json:"components"`
}

// sbom has no time and no random serial number in it: two builds of one commit
// have one.
func sbom(info *debug.BuildInfo, version string, web []npm) document {
	doc := document{Format: "CycloneDX", SpecVersion: "1.6", Version: 1}
	main := component{Type: "application", Name: info.Main.Path, Version: cmp.Or(version, info.Main.Version), Licenses: []license{{"Apache-2.0"}}}
	main.PURL = "pkg:golang/" + main.Name + "@" + main.Version
	main.Ref = main.PURL
	doc.Metadata.Component = main
	std := component{Type: "library", Name: "std", Version: info.GoVersion, PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
	std.Ref = std.PURL
	doc.Components = append(doc.Components, std)
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		doc.Components = append(doc.Components, component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl})
	}
	seen := map[string]bool{}
	for _, p := range web {
		purl := "pkg:npm/" + strings.Replace(p.Name, "@", "%40", 1) + "@" + p.Version
		if seen[purl] {
			continue // in two places of the tree
		}
		seen[purl] = true
		doc.Components = append(doc.Components, component{Type: "library", Ref: purl, Name: p.Name, Version: p.Version, PURL: purl, Licenses: []license{{p.License}}})
	}
	slices.SortStableFunc(doc.Components, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	return doc
}
