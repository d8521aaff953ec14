package exec_test

import (
	"encoding/json"
	"fmt"

	"github.com/tholehq/thole/protocol/exec"
)

// Paths travel as URIs, whatever the system at the other end.
func ExampleFormatURI() {
	uri := exec.FormatURI("/home/me/a b.txt")
	path, err := exec.ParseURI(uri)
	fmt.Println(uri, path, err)
	// Output: file:///home/me/a%20b.txt /home/me/a b.txt <nil>
}

// What is no path of this system is refused, never guessed.
func ExampleParseURI() {
	_, err := exec.ParseURI("https://example.org/x")
	fmt.Println(err != nil)
	// Output: true
}

// A profile that lets a program read everything, write where it works, and speak
// to nobody.
func ExampleSandbox() {
	s := exec.Sandbox{WindowsLevel: "disabled", Permissions: exec.Permissions{
		Type: exec.PermissionsManaged, Network: exec.NetworkRestricted,
		FileSystem: &exec.FileSystemPolicy{Type: exec.FSRestricted, Entries: []exec.FSEntry{
			{Path: exec.FSPath{Type: exec.FSPathPath, Path: exec.FormatURI("/")}, Access: exec.AccessRead},
			{Path: exec.FSPath{Type: exec.FSPathPath, Path: exec.FormatURI("/work")}, Access: exec.AccessWrite},
		}},
	}}
	text, err := json.Marshal(s.Permissions.FileSystem.Entries)
	fmt.Println(string(text), err)
	// Output: [{"path":{"type":"path","path":"file:///"},"access":"read"},{"path":{"type":"path","path":"file:///work"},"access":"write"}] <nil>
}
