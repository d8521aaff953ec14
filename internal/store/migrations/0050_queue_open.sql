-- Finding a thread's next open row must not walk over the done ones before it.
create index turn_queue_open on turn_queue (thread_id, seq) where state <> 'done';
