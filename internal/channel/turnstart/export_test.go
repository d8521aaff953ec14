package turnstart

import (
	"os"

	thole "github.com/tholehq/thole"
)

// Plain makes a channel ask for no experimental methods, so that a server shows it
// no queue.
func (c *Channel) Plain() { c.plain = true }

// ServerOf says which process serves what this process only passes on.
func (c *Channel) ServerOf(pid func() int) {
	c.serverOf = func(named int) int {
		if named == os.Getpid() {
			return pid()
		}
		return named
	}
}

// TrySteeringWith makes a channel's trials of steering start turns with a text.
func (c *Channel) TrySteeringWith(text string) { c.trialText = text }

// Impatient makes a channel take every trial that it finds for one left behind.
func (c *Channel) Impatient() { c.leftAfter = 0 }

// News is how often other settings of an attachment's thread were announced.
func (c *Channel) News(id thole.AttachmentID) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.links[id].news.Load()
}
