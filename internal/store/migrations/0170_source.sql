-- files: where the thread's files come from, as JSON. It never changes.
alter table threads add column files text not null default '{}';
