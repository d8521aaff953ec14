-- command: what a job runs in the box of its thread, as JSON; '' for work elsewhere.
-- executor_id: where it was given to run, '' before. It is set once, so that a command
-- never runs twice.
alter table delivery_jobs add column command text not null default '';
alter table delivery_jobs add column executor_id text not null default '';
create index delivery_jobs_commands on delivery_jobs (job_id) where status = 'running' and command <> '';

-- A person may let a held batch go. Attempts up to released_generation are what they
-- took responsibility for.
alter table delivery_batches add column released_by text not null default '';
alter table delivery_batches add column released_generation bigint not null default 0;

-- Tokens may have a scope of their own for reporting jobs, which the check of before did
-- not know; SQLite changes a check only with its table.
create table api_tokens_with_jobs (
    token_hash text primary key,
    id         text   not null unique,
    user_id    text   not null references users (id),
    name       text   not null check (name <> ''),
    created_at bigint not null,
    seen_at    bigint not null,
    expires_at bigint not null,
    scope      text   not null check (scope in ('jobs', 'read', 'act', 'admin')),
    parent     text   not null
);
insert into api_tokens_with_jobs (token_hash, id, user_id, name, created_at, seen_at, expires_at, scope, parent)
    select token_hash, id, user_id, name, created_at, seen_at, expires_at, scope, parent from api_tokens;
drop table api_tokens;
alter table api_tokens_with_jobs rename to api_tokens;
create index api_tokens_user on api_tokens (user_id, created_at);
create index api_tokens_parent on api_tokens (parent) where parent <> '';
