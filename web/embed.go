// Package web carries the built browser UI inside the binary. It owns the files
// of dist and nothing else: who may see them, their caching and the content
// policy belong to the HTTP server.
//
// dist is committed, so that `go build` and `go install` work without npm;
// `npm run build` in this folder makes it again.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Dist is the built UI: index.html, icon.svg and assets/, whose names carry a
// hash of their content and may be cached for ever.
func Dist() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // "dist" is a valid path
	}
	return sub
}
