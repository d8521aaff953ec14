-- What is known of the Desktop app of this home: one row for the whole installation. Only
-- its repair writes capabilities, each change under a new generation.
create table desktop_installation (
    name                  text   primary key check (name = 'desktop'),
    read_transport        text   not null check (read_transport in ('', 'direct_file_read', 'helper_cli_read')),
    generation            bigint not null check (generation >= 0),
    read_capability       text   not null check (read_capability in ('unknown', 'validated', 'unavailable')),
    artifact_capability   text   not null check (artifact_capability in ('unknown', 'validated', 'unavailable')),
    writeback_capability  text   not null check (writeback_capability in ('unknown', 'validated', 'unavailable')),
    fingerprint           text   not null,
    validated_at          bigint not null,
    updated_by            text   not null,
    updated_at            bigint not null,
    version               bigint not null,
    check ((generation = 0) = (read_transport = '')),
    check ((validated_at <> 0) = (read_capability = 'validated' or artifact_capability = 'validated' or writeback_capability = 'validated')),
    check (validated_at = 0 or fingerprint <> '')
);
insert into desktop_installation values ('desktop', '', 0, 'unknown', 'unknown', 'unknown', '', 0, '', 0, 0);

-- Which heartbeat wakes which thread. What is said of the installation is a copy from the
-- time of the binding's repair: one that differs permits nothing.
create table desktop_bindings (
    binding_id           text   primary key,
    lane_id              text   not null unique references delivery_lanes (lane_id),
    user_id              text   not null,
    endpoint             text   not null,
    thread_id            text   not null check (thread_id <> ''),
    state                text   not null check (state in ('unbound', 'bound', 'degraded')),
    degraded_for         text   not null,
    automation_id        text   not null,
    bridge_thread_id     text   not null,
    read_transport       text   not null check (read_transport in ('', 'direct_file_read', 'helper_cli_read')),
    transport_generation bigint not null,
    read_capability      text   not null check (read_capability in ('unknown', 'validated', 'unavailable')),
    artifact_capability  text   not null check (artifact_capability in ('unknown', 'validated', 'unavailable')),
    writeback_capability text   not null check (writeback_capability in ('unknown', 'validated', 'unavailable')),
    fingerprint          text   not null,
    armed_generation     bigint not null,
    quiesced_at          bigint not null,
    pause_not_before     bigint not null,
    pause_deadline       bigint not null,
    created_at           bigint not null,
    updated_at           bigint not null,
    verified_at          bigint not null,
    version              bigint not null,
    check ((state = 'degraded') = (degraded_for <> '')),
    check (state = 'unbound' or (automation_id <> '' and bridge_thread_id <> '')),
    check (armed_generation >= 0 and (armed_generation > 0 or quiesced_at = 0)),
    check ((armed_generation > 0) = (pause_not_before > 0) and pause_deadline >= pause_not_before)
);
-- A heartbeat wakes one thread.
create unique index desktop_bindings_automation on desktop_bindings (user_id, endpoint, automation_id) where state <> 'unbound';

