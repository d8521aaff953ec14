-- Background results on their way to threads. A lane is the delivery side of one
-- thread at one endpoint; every change to its batches and attempts locks it.
create table delivery_lanes (
    lane_id        text primary key,
    app_id         text   not null,
    project_id     text   not null,
    user_id        text   not null,
    endpoint       text   not null,
    thread_id      text   not null check (thread_id <> ''),
    generation     bigint not null check (generation >= 0),
    next_seq       bigint not null check (next_seq >= 1),
    last_ready_at  bigint not null,
    not_before     bigint not null,
    eligible_after bigint not null,
    failures       bigint not null check (failures >= 0),
    blocked        text   not null,
    due_at         bigint not null,
    ticket         bigint not null check (ticket >= 0),
    scope          text   not null,
    version        bigint not null,
    check (due_at = 0 or ticket = 0),
    check (ticket = 0 or scope in ('cli', 'desktop', 'thole')),
    unique (user_id, endpoint, thread_id)
);
create index delivery_lanes_ready on delivery_lanes (scope, ticket) where ticket <> 0;
create index delivery_lanes_due on delivery_lanes (due_at, lane_id) where due_at <> 0;
create index delivery_lanes_thread on delivery_lanes (user_id, thread_id);

-- One fair order per target: tickets rise, the cursor is the one served last.
create table delivery_scopes (
    target      text primary key check (target in ('cli', 'desktop', 'thole')),
    ready_cursor bigint not null,
    last_ticket bigint not null check (last_ticket >= ready_cursor),
    revision    bigint not null
);
insert into delivery_scopes (target, ready_cursor, last_ticket, revision) values ('cli', 0, 0, 0);
insert into delivery_scopes (target, ready_cursor, last_ticket, revision) values ('desktop', 0, 0, 0);
insert into delivery_scopes (target, ready_cursor, last_ticket, revision) values ('thole', 0, 0, 0);

create table delivery_jobs (
    job_id         text primary key,
    lane_id        text    not null references delivery_lanes (lane_id),
    app_id         text    not null,
    project_id     text    not null,
    user_id        text    not null,
    target_kind    text    not null check (target_kind in ('cli', 'desktop', 'thole')),
    endpoint       text    not null,
    thread_id      text    not null,
    parent_job_id  text    not null,
    status         text    not null check (status in ('running', 'ready', 'failed', 'cancelled')),
    task_kind      text    not null,
    task_summary   text    not null,
    metadata       text    not null,
    dedupe_key     text    not null,
    read_only      boolean not null,
    needs_approval boolean not null,
    needs_network  boolean not null,
    needs_write    boolean not null,
    supervised     boolean not null,
    settled        text    not null check (settled in ('', 'ready', 'failed')),
    settled_by     text    not null,
    result_summary text    not null,
    exit_code      bigint  not null, -- of a supervised command; -1: none
    artifact_id    text    not null,
    inline_payload text    not null,
    inline_bytes   bigint  not null check (inline_bytes >= 0),
    artifact_read  boolean not null,
    batch_id       text    not null,
    batch_order    bigint  not null,
    created_at     bigint  not null,
    ready_at       bigint  not null,
    updated_at     bigint  not null,
    completed_at   bigint  not null,
    version        bigint  not null,
    check (status not in ('ready', 'failed') or (ready_at <> 0 and settled = status)),
    check (batch_id = '' or parent_job_id = ''),
    check (status <> 'running' or batch_id = '')
);
create unique index delivery_jobs_dedupe on delivery_jobs (lane_id, dedupe_key) where dedupe_key <> '';
create index delivery_jobs_parent on delivery_jobs (parent_job_id) where parent_job_id <> '';
create unique index delivery_jobs_batch on delivery_jobs (batch_id, batch_order) where batch_id <> '';
create index delivery_jobs_running on delivery_jobs (job_id) where status = 'running';
create index delivery_jobs_user on delivery_jobs (user_id, created_at, job_id);

create table delivery_batches (
    batch_id        text primary key,
    lane_id         text    not null references delivery_lanes (lane_id),
    seq             bigint  not null,
    target_kind     text    not null check (target_kind in ('cli', 'desktop', 'thole')),
    delivery_mode   text    not null check (delivery_mode in ('desktop_heartbeat', 'cli_turn_start', 'cli_turn_steer')),
    state           text    not null check (state in ('queued', 'materialized', 'cooldown', 'closed')),
    replay_policy   text    not null check (replay_policy in ('automatic', 'manual_resolution_only')),
    summary         text    not null,
    held_for        text    not null,
    jobs            bigint  not null check (jobs > 0),
    artifact_count  bigint  not null,
    inline_bytes    bigint  not null,
    read_only       boolean not null,
    needs_approval  boolean not null,
    needs_network   boolean not null,
    needs_write     boolean not null,
    artifact_read   boolean not null,
    first_ready_at  bigint  not null,
    last_ready_at   bigint  not null,
    materialized_at bigint  not null,
    last_attempt_at bigint  not null,
    not_before      bigint  not null,
    window_ends_at  bigint  not null,
    max_attempts    bigint  not null check (max_attempts > 0),
    attempt_count   bigint  not null check (attempt_count >= 0),
    head_attempt_id text    not null,
    generation      bigint  not null,
    boundary_state           text   not null check (boundary_state in ('not_crossed', 'crossed_unacknowledged', 'acknowledged')),
    boundary_crossed_at      bigint not null,
    boundary_attempt_id      text   not null,
    boundary_generation      bigint not null,
    boundary_revision        bigint not null,
    boundary_envelope_ref    text   not null,
    boundary_envelope_bytes  bigint not null,
    boundary_retention_until bigint not null,
    boundary_pin_until       bigint not null,
    closed_at       bigint  not null,
    close_reason    text    not null check (close_reason in ('', 'delivered', 'superseded', 'operator_confirmed_delivery',
        'operator_closed_unconfirmed', 'cancelled', 'redelivery_window_exhausted', 'manual_resolution_expired',
        'max_attempts_exhausted', 'handoff_recorded')),
    created_at      bigint  not null,
    updated_at      bigint  not null,
    version         bigint  not null,
    check ((state = 'closed') = (close_reason <> '')),
    check ((state = 'closed') = (closed_at <> 0)),
    check (state in ('queued', 'closed') or window_ends_at <> 0),
    check (state <> 'cooldown' or attempt_count > 0),
    check (state <> 'cooldown' or replay_policy = 'automatic'),
    check ((replay_policy = 'manual_resolution_only') = (held_for <> '')),
    check (close_reason <> 'delivered' or (replay_policy = 'automatic' and attempt_count > 0)),
    unique (lane_id, seq)
);
create index delivery_batches_open on delivery_batches (lane_id, seq) where state <> 'closed';
create index delivery_batches_window on delivery_batches (window_ends_at, batch_id) where state in ('materialized', 'cooldown');

create table delivery_attempts (
    attempt_id        text primary key,
    lane_id           text   not null references delivery_lanes (lane_id),
    batch_id          text   not null references delivery_batches (batch_id),
    generation        bigint not null check (generation > 0),
    state             text   not null check (state in ('prepared', 'accept_pending', 'arm_pending', 'cooldown', 'closed', 'superseded', 'abandoned')),
    ticket            bigint not null,
    holder            text   not null,
    lease_until       bigint not null,
    rpc_request_id    text   not null,
    rpc_kind          text   not null check (rpc_kind in ('', 'cli_turn_start', 'cli_turn_steer')),
    rpc_started_at    bigint not null,
    rpc_state         text   not null check (rpc_state in ('', 'pending_acceptance', 'accepted', 'rejected_before_accept', 'acceptance_unknown')),
    rpc_marker        text   not null,
    turn_id           text   not null,
    attachment_id     text   not null,
    epoch             bigint not null,
    accepted_at       bigint not null,
    observation_state text   not null check (observation_state in ('', 'tracking', 'lost', 'expired')),
    observation_until bigint not null,
    last_event        text   not null check (last_event in ('', 'turn_started', 'turn_completed', 'turn_failed', 'turn_interrupted', 'turn_replaced')),
    last_event_at     bigint not null,
    bridge_request_id text   not null,
    arm_lease_id      text   not null,
    arm_lease_until   bigint not null,
    arm_pending_since bigint not null,
    arm_deadline      bigint not null,
    binding_id        text   not null,
    automation_id     text   not null,
    automation_state  text   not null check (automation_state in ('unknown', 'observed', 'reconciled')),
    snapshot_path     text   not null,
    snapshot_revision bigint not null,
    delivery_deadline bigint not null,
    cooldown_until    bigint not null,
    deadline_at       bigint not null, -- when the sweep must decide; derived
    created_at        bigint not null,
    updated_at        bigint not null,
    version           bigint not null,
    check (state <> 'accept_pending' or (rpc_request_id <> '' and rpc_kind <> '' and rpc_marker <> '' and rpc_started_at <> 0
        and rpc_state = 'pending_acceptance' and deadline_at <> 0)),
    check (state <> 'arm_pending' or (bridge_request_id <> '' and arm_lease_id <> '' and deadline_at <> 0)),
    check (state <> 'cooldown' or rpc_kind = '' or (turn_id <> '' and rpc_state = 'accepted' and observation_state = 'tracking' and deadline_at <> 0)),
    check (state <> 'cooldown' or rpc_kind <> '' or (cooldown_until <> 0 and arm_lease_id <> '')),
    unique (lane_id, generation)
);
create unique index delivery_attempts_open on delivery_attempts (lane_id) where state in ('prepared', 'accept_pending', 'arm_pending', 'cooldown');
create index delivery_attempts_deadline on delivery_attempts (deadline_at, attempt_id) where deadline_at <> 0;
create index delivery_attempts_batch on delivery_attempts (batch_id, generation);

-- The ledger: one row per decision, with its proof. Only ever appended to.
create table delivery_audit (
    lane_id    text   not null,
    seq        bigint not null,
    at         bigint not null,
    actor      text   not null,
    via        text   not null,
    client     text   not null,
    event      text   not null check (event <> ''),
    job_id     text   not null,
    batch_id   text   not null,
    attempt_id text   not null,
    generation bigint not null,
    from_state text   not null,
    to_state   text   not null,
    proof      text   not null,
    primary key (lane_id, seq)
);
create index delivery_audit_batch on delivery_audit (batch_id, seq) where batch_id <> '';
create index delivery_audit_job on delivery_audit (job_id, seq) where job_id <> '';
create index delivery_audit_at on delivery_audit (at, lane_id, seq);
