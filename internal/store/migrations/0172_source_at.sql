-- source_kind and source_at: the kind of a thread's source and the repository, directory or
-- upload that it names, for look-ups. dir: the directory in which the agent works; earlier
-- threads keep the label that they have.
alter table threads add column source_kind text not null default '';
alter table threads add column source_at text not null default '';
create index threads_source on threads (source_at, user_id, updated_at) where source_at <> '';
update threads set dir = '/workspace' where dir = '';
