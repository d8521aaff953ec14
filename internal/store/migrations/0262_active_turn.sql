-- The running turn of a session as its stream last showed it.
alter table attachments add column active_turn text not null default ''; -- JSON
