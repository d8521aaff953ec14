-- Dead entries of turns that came in one millisecond fold into one, which a claim
-- passes over at once.
drop index turn_queue_ready;
create index turn_queue_ready on turn_queue (priority desc, created_at) where state = 'ready' and head and kind = 'turn';
