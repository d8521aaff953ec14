-- pinned: lists that people look at show the thread first.
alter table threads add column pinned boolean not null default false;
create index threads_pinned on threads (user_id, archived, pinned, updated_at, id) where not ephemeral;
create index threads_pinned_created on threads (user_id, archived, pinned, created_at, id) where not ephemeral;
