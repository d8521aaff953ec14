-- What a plugin's result is delivered by, as JSON; '' for results of others.
alter table delivery_jobs add column plugin_target text not null default '';
-- The same of a batch whose delivery starts a server of its own.
alter table delivery_batches add column plugin_target text not null default '' check (plugin_target = '' or target_kind = 'cli');

-- Plugins that introduced themselves: a process, proven by the socket.
create table plugin_instances (
    user_id     text   not null,
    plugin      text   not null check (plugin <> ''),
    instance_id text   not null check (instance_id <> ''),
    release     text   not null,
    process     text   not null check (process <> ''), -- JSON: pid, boot id, start ticks
    hello_at    bigint not null,
    server_id   text   not null default '',
    primary key (user_id, plugin, instance_id, server_id)
);

-- App-servers that plugins hold, each until a time that they move on.
create table app_server_leases (
    lease_id      text   primary key,
    user_id       text   not null,
    plugin        text   not null check (plugin <> ''),
    instance_id   text   not null check (instance_id <> ''),
    endpoint      text   not null check (endpoint <> ''),
    thread_id     text   not null check (thread_id <> ''),
    attachment_id text   not null check (attachment_id <> ''),
    lease_until   bigint not null check (lease_until > 0),
    server_id     text   not null default ''
);
create index app_server_leases_until on app_server_leases (lease_until);
