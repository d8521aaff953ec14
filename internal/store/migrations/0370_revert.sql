-- reverted: the turn, or the item, is no longer part of its thread. Its row stays for what
-- else refers to it: usage, files, audit.
alter table turns add column reverted boolean not null default false;
alter table thread_items add column reverted boolean not null default false;
-- retell: the agent has no session that remembers the thread; the next one begins with its text.
alter table threads add column retell boolean not null default false;
