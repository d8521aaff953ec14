package httpapi

import (
	"io/fs"
	"net/http"
	"path"
	"strings"

	thole "github.com/tholehq/thole"
)

// wantsPage reports whether a browser opens a page whose name the API has too:
// a client of the API does not ask for HTML.
func wantsPage(r *http.Request) bool {
	switch strings.TrimSuffix(r.URL.Path, "/") {
	case "/inbox", "/usage", "/connections":
		return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
	}
	return false
}

// noUI is shown by a binary that was built without the web UI.
const noUI = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>thole</title></head>
<body><h1>thole is running</h1><p>This binary was built without the web UI. Build it with <code>make build</code>.</p></body></html>
`

// ui serves the built web UI: files under their own names, the page itself for
// every path of its own. Nothing in it is secret, so nothing here needs a login.
type ui struct {
	files fs.FS
	s     *Server // refuses
}

func (u *ui) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		u.s.refuseMethod(w, r, http.MethodGet, http.MethodHead)
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if name != "" && onlyJSON(r) && !u.has(name) {
		u.s.unknown(w, r)
		return
	}
	if u.files == nil {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write([]byte(noUI))
		return
	}
	if name != "" && name != "index.html" {
		if u.has(name) {
			// Names under assets carry the sum of their content.
			if strings.HasPrefix(name, "assets/") {
				w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			} else {
				w.Header().Set("Cache-Control", "no-cache")
			}
			u.file(w, r, name)
			return
		}
		if path.Ext(name) != "" || strings.HasPrefix(name, "assets/") {
			u.s.refuse(w, r, thole.Errorf(thole.CodeNotFound, "there is no such file"))
			return
		}
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Add("Vary", "Accept") // see wantsPage
	u.file(w, r, "index.html")
}

// file serves one file, compressed where the build left a compressed form next to
// it and the client takes it.
func (u *ui) file(w http.ResponseWriter, r *http.Request, name string) {
	w.Header().Add("Vary", "Accept-Encoding")
	for _, enc := range []struct{ token, ext string }{{"br", ".br"}, {"gzip", ".gz"}} {
		if !accepts(r, enc.token) {
			continue
		}
		if _, err := fs.Stat(u.files, name+enc.ext); err == nil {
			w.Header().Set("Content-Encoding", enc.token)
			w.Header().Set("Content-Type", contentType(name))
			http.ServeFileFS(w, r, u.files, name+enc.ext)
			return
		}
	}
	if name == "index.html" { // ServeFileFS would redirect this name away
		b, err := fs.ReadFile(u.files, name)
		if err != nil {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(noUI))
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(b)
		return
	}
	http.ServeFileFS(w, r, u.files, name)
}

func accepts(r *http.Request, token string) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == token && strings.ReplaceAll(q, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".json", ".map":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".woff2":
		return "font/woff2"
	case ".wasm":
		return "application/wasm"
	}
	return "application/octet-stream"
}

func (u *ui) has(name string) bool {
	if u.files == nil {
		return false
	}
	st, err := fs.Stat(u.files, name)
	return err == nil && !st.IsDir()
}

// onlyJSON says that a client asked for JSON and takes no page.
func onlyJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "json") && !strings.Contains(accept, "text/html") && !strings.Contains(accept, "*/*")
}
