package turnstart

// Plain makes a channel ask for no experimental methods, so that a server shows it
// no queue.
func (c *Channel) Plain() { c.plain = true }
