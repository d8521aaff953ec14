-- What a session allowed before a delivery tightened it, until it is put back.
alter table attachments add column pinned text not null default ''; -- JSON
