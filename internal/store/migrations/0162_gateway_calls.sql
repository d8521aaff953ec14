-- Model calls of agents, as the gateway saw them. A call is reserved before its first
-- byte leaves and settled once; a refused one was never sent. Rows outlive the thread.
create table gateway_calls (
    id              text primary key check (id <> ''),
    thread_id       text    not null,
    turn_id         text    not null check (turn_id <> ''),
    executor_id     text    not null,
    app_id          text    not null,
    project_id      text    not null,
    user_id         text    not null,
    provider        text    not null,
    route           text    not null,
    upstream        text    not null,
    model           text    not null,
    path            text    not null,
    state           text    not null check (state in ('reserved', 'settled', 'refused')),
    status          bigint  not null,
    error           text    not null,
    -- refusal: what the budget that refused it said, '' otherwise.
    refusal         text    not null,
    -- The most that the call may use; reserved_micros is -1 when its model has no price.
    max_output      bigint  not null check (max_output >= 0),
    reserved_tokens bigint  not null check (reserved_tokens >= max_output),
    reserved_micros bigint  not null check (reserved_micros >= -1),
    input           bigint  not null check (input >= 0),
    output          bigint  not null check (output >= 0),
    reasoning       bigint  not null check (reasoning >= 0),
    cache_read      bigint  not null check (cache_read >= 0),
    cache_write     bigint  not null check (cache_write >= 0),
    -- cost in millionths of a dollar, -1 when its model has no price.
    cost_micros     bigint  not null check (cost_micros >= -1),
    -- known: the upstream said what was used. If not, the numbers are an upper bound.
    known           boolean not null,
    waited_ms       bigint  not null,
    started_at      bigint  not null check (started_at > 0),
    first_byte_at   bigint  not null,
    ended_at        bigint  not null,
    check ((state = 'refused') = (refusal <> '')),
    check ((state = 'reserved') = (ended_at = 0))
);

create index gateway_calls_turn on gateway_calls (turn_id, thread_id);
create index gateway_calls_thread on gateway_calls (thread_id, started_at);
create index gateway_calls_user on gateway_calls (user_id, started_at);
create index gateway_calls_project on gateway_calls (project_id, started_at);
create index gateway_calls_app on gateway_calls (app_id, started_at);
create index gateway_calls_open on gateway_calls (started_at) where state = 'reserved';

-- source: whose figures a turn has, its calls' or what its agent reported. The reported
-- ones are kept for comparison, -1 when there are none.
alter table turn_usage add column source text not null default 'cli' check (source in ('cli', 'gateway'));
alter table turn_usage add column reported_tokens bigint not null default -1;
alter table turn_usage add column reported_micros bigint not null default -1;
create index turn_usage_user on turn_usage (user_id, settled_at);
create index turn_usage_project on turn_usage (project_id, settled_at);
create index turn_usage_turn on turn_usage (turn_id);

-- What was used: each settled call, each ended turn that made none, and ended turns
-- whose calls were all refused, so that the turns can be counted. Usage and budgets both
-- read this and so agree.
create view usage_charges (thread_id, turn_id, app_id, project_id, user_id, provider, upstream, model,
    input, output, reasoning, cache_read, cache_write, cost_micros, known, at) as
select thread_id, turn_id, app_id, project_id, user_id, provider, upstream, model,
    input, output, reasoning, cache_read, cache_write, cost_micros, known, started_at
from gateway_calls where state = 'settled'
union all
select thread_id, turn_id, app_id, project_id, user_id, provider, '', model,
    input, output, reasoning, cache_read, cache_write, cost_micros, true, settled_at
from turn_usage u where source = 'cli' or not exists
    (select 1 from gateway_calls c where c.thread_id = u.thread_id and c.turn_id = u.turn_id and c.state = 'settled');
