// Package release tries the scripts that make and install a release. It builds
// no release itself.
package release
