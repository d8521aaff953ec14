-- goal: what the thread works at by itself, as JSON, '' when it has none.
alter table threads add column goal text not null default '';
