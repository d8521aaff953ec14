-- An ask that the agent answered itself has a state of its own, and each ask names
-- the event that settled it. Checks cannot be changed everywhere, so the table is
-- made anew.
create table asks_next (
    thread_id   text   not null references threads (id) on delete cascade,
    ask_id      text   not null check (ask_id <> ''),
    turn_id     text   not null,
    kind        text   not null check (kind in ('command', 'file_change', 'permissions', 'input', 'plan', 'elicitation',
        'tool', 'auth')),
    state       text   not null check (state in ('pending', 'answered', 'expired', 'canceled', 'self_answered')),
    body        text   not null,
    answer      text   not null,
    actor       text   not null,
    deadline    bigint not null,
    asked_at    bigint not null,
    resolved_at bigint not null,
    receipt     text   not null,
    primary key (thread_id, ask_id),
    check (case state when 'self_answered' then true when 'answered' then answer <> '' else answer = '' end),
    check ((state = 'pending') = (resolved_at = 0)),
    check (state <> 'pending' or receipt = '')
);
insert into asks_next (thread_id, ask_id, turn_id, kind, state, body, answer, actor, deadline, asked_at, resolved_at, receipt)
    select thread_id, ask_id, turn_id, kind, state, body, answer, actor, deadline, asked_at, resolved_at, '' from asks;
drop table asks;
alter table asks_next rename to asks;
create index asks_due on asks (deadline) where state = 'pending' and deadline > 0;
create index asks_pending on asks (thread_id, asked_at) where state = 'pending';
