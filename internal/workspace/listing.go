package workspace

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tholehq/thole/internal/workspace/beneath"
)

// FileInfo is one name as people see it. A name that is no UTF-8 is in RawPath,
// in base64, and Path shows what can be shown.
type FileInfo struct {
	Path     string    `json:"path"`
	RawPath  string    `json:"raw_path,omitempty"`
	Kind     string    `json:"kind"` // file, directory, link, other
	Mode     string    `json:"mode"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	ETag     string    `json:"etag,omitempty"`
	Link     string    `json:"link,omitempty"`
}

// TreeListing is what /workspace/tree answers.
type TreeListing struct {
	Entries   []FileInfo `json:"entries"`
	Truncated bool       `json:"truncated,omitempty"`
}

// MaxListing bounds a listing.
const MaxListing = 10_000

var kindNames = map[beneath.Kind]string{beneath.File: "file", beneath.Folder: "directory", beneath.Link: "link", beneath.Other: "other"}

// ETagOf stands for the state of a file.
func ETagOf(st beneath.Stat) string {
	return fmt.Sprintf(`"%x-%x-%x-%x"`, st.Inode, st.Mtime, st.Ctime, st.Size)
}

// Describe shows a file or directory.
func Describe(path string, st beneath.Stat) FileInfo {
	_, raw := textOrRaw(path)
	info := FileInfo{Path: path, RawPath: raw, Kind: kindNames[st.Kind], Mode: strconv.FormatUint(uint64(st.Mode), 8), Modified: time.Unix(0, st.Mtime).UTC()}
	if st.Kind == beneath.File {
		info.Size, info.ETag = st.Size, ETagOf(st)
	}
	return info
}
