// Package channel proves deliveries end to end: the thole program, the real Codex
// terminal in tmux, jobs that finish elsewhere, and the scripted model.
package channel
