// Package repository has the real agent CLIs work on real repositories with the program
// as it is shipped: what they did comes out as git says that it is, and nothing that a
// repository names runs on the machine.
package repository
