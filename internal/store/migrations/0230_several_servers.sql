-- adds only: servers of the version before go on with it
-- Several servers at a time. protocol 0 is a server that expects to be the only one.
alter table servers add column roles text not null default '';
alter table servers add column protocol bigint not null default 0;
alter table servers add column draining boolean not null default false;
alter table servers add column objects text not null default '';     -- where its objects are
alter table servers add column peer text not null default '';        -- where other servers reach it
alter table servers add column certificate text not null default ''; -- sum of the one it shows there

-- What only the machine of one server has: commands and terminals that run there, files of
-- results, calls to a model. Empty: of the home that has this store.
alter table delivery_jobs add column server_id text not null default '';
alter table attachments add column server_id text not null default '';
alter table artifacts add column server_id text not null default '';
alter table gateway_calls add column server_id text not null default '';

-- Tickets for one request each. sealed opens with the ticket, of which only the sum is here.
create table tickets (
    ticket_hash text primary key,
    sealed      text   not null,
    expires_at  bigint not null
);

-- Duties that one server at a time has.
create table duties (
    name   text primary key,
    holder text   not null,
    until  bigint not null
);

-- Notifications that one of the servers sends.
create table notices (
    event_id text primary key,
    at       bigint not null
);

-- Threads whose files are a directory or a repository on the machine of one server: their
-- turns run there.
create table thread_places (
    thread_id text primary key,
    server_id text not null
);
