// Package commands tests what every command has in common, on the program as it is built.
package commands
