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

-- family_id: the thread in whose budget a charge counts. It is the thread itself, and for one
-- that an agent started the thread of that agent.
alter table gateway_calls add column family_id text not null default '';
update gateway_calls set family_id = thread_id;
create index gateway_calls_family on gateway_calls (family_id, started_at);
alter table turn_usage add column family_id text not null default '';
update turn_usage set family_id = thread_id;
create index turn_usage_family on turn_usage (family_id, settled_at);
drop view usage_charges;
create view usage_charges (thread_id, turn_id, app_id, project_id, user_id, provider, upstream, model,
    input, output, reasoning, cache_read, cache_write, cost_micros, known, at, family_id) as
select thread_id, turn_id, app_id, project_id, user_id, provider, upstream, model,
    input, output, reasoning, cache_read, cache_write, cost_micros, known, started_at, family_id
from gateway_calls where state = 'settled'
union all
select thread_id, turn_id, app_id, project_id, user_id, provider, '', model,
    input, output, reasoning, cache_read, cache_write, cost_micros, true, settled_at, family_id
from turn_usage u where source = 'cli' or not exists
    (select 1 from gateway_calls c where c.thread_id = u.thread_id and c.turn_id = u.turn_id and c.state = 'settled');

create index threads_children on threads (parent_id) where parent_id <> '';
