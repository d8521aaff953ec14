// Package smoke proves the ground that everything else stands on: each real agent
// CLI, started with an empty environment, completes a turn offline against the
// scripted model. It drives the CLIs the plainest way they offer, without any of
// thole's providers.
package smoke
