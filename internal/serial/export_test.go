package serial

// Lanes counts the lanes held.
func Lanes[K comparable](q *Queues[K]) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.lanes)
}
