-- Limits on what may be used. subject is the id of what scope names, '' for each of them:
-- every user, every thread, every turn.
create table budgets (
    id           text primary key check (id <> ''),
    scope        text   not null check (scope in ('user', 'project', 'app', 'thread', 'turn')),
    subject      text   not null,
    period       text   not null check (period in ('day', 'month', 'total')),
    limit_micros bigint not null check (limit_micros >= 0),
    limit_tokens bigint not null check (limit_tokens >= 0),
    soft_pct     bigint not null check (soft_pct between 0 and 100),
    action       text   not null check (action in ('warn', 'block_new', 'interrupt')),
    version      bigint not null check (version > 0),
    created_by   text   not null,
    created_at   bigint not null,
    updated_at   bigint not null,
    unique (scope, subject, period),
    check (limit_micros > 0 or limit_tokens > 0),
    check (scope <> 'turn' or subject = '' and period = 'total' and action <> 'block_new')
);

-- What a subject has used of a budget in one period: always the sum of the period's
-- charges and of its reserved calls. A row is made from those sums when it is needed first.
create table budget_states (
    budget_id       text   not null references budgets (id) on delete cascade,
    subject         text   not null check (subject <> ''),
    period_start    bigint not null,
    spent_micros    bigint not null check (spent_micros >= 0),
    spent_tokens    bigint not null check (spent_tokens >= 0),
    reserved_micros bigint not null check (reserved_micros >= 0),
    reserved_tokens bigint not null check (reserved_tokens >= 0),
    -- unpriced counts charges of models without a price: they count tokens only.
    unpriced        bigint not null check (unpriced >= 0),
    -- notified: 1 the soft limit was reported, 2 the limit was.
    notified        bigint not null check (notified between 0 and 2),
    primary key (budget_id, subject, period_start)
);

-- Notices about budgets for the logs of threads, until they are there.
create table budget_notices (
    id        text primary key check (id <> ''),
    budget_id text    not null,
    thread_id text    not null,
    turn_id   text    not null,
    body      text    not null,
    at        bigint  not null,
    posted    boolean not null
);

create index budget_notices_open on budget_notices (thread_id) where not posted;

-- Who changed which budget, and to what. Rows are only added.
create table budget_changes (
    budget_id text   not null,
    seq       bigint not null check (seq > 0),
    action    text   not null check (action in ('set', 'remove')),
    actor     text   not null,
    body      text   not null,
    at        bigint not null,
    primary key (budget_id, seq)
);
