-- Many users: who they are, what they log in with, where they belong and what was granted
-- to them. An invited user is a disabled one who was never in, so that whatever asks for
-- active users keeps asking for the same.
alter table users add column kind text not null default 'human' check (kind in ('human', 'service', 'system'));
alter table users add column invited boolean not null default false check (not invited or state = 'disabled');
alter table users add column email text not null default '';
alter table users add column locale text not null default '';
alter table users add column disabled_at bigint not null default 0;

-- The program itself: what it does is nobody else's.
insert into users (id, login, name, state, created_at, kind) values ('00000000-0000-7000-8000-000000000004', 'system', 'thole itself', 'active', 0, 'system');

-- What a provider of logins calls a user. A user is found by issuer and subject and by
-- nothing else.
create table user_identities (
    issuer        text   not null check (issuer <> ''),
    subject       text   not null check (subject <> ''),
    user_id       text   not null references users (id),
    email         text   not null,
    created_at    bigint not null,
    last_login_at bigint not null,
    primary key (issuer, subject)
);

create index user_identities_user on user_identities (user_id);

create table passwords (
    user_id    text primary key references users (id),
    argon2id   text   not null check (argon2id <> ''),
    changed_at bigint not null
);

create table departments (
    id          text primary key check (id <> ''),
    parent_id   text   not null check (parent_id <> id), -- '': a department of nobody
    name        text   not null check (name <> ''),
    external_id text   not null,
    created_at  bigint not null
);

create unique index departments_name on departments (parent_id, name);
create unique index departments_external on departments (external_id) where external_id <> '';

create table department_members (
    department_id text not null references departments (id),
    user_id       text not null references users (id),
    primary key (department_id, user_id)
);

create index department_members_user on department_members (user_id);

create table roles (
    name    text primary key,
    builtin boolean not null
);

insert into roles (name, builtin) values ('platform_admin', true), ('app_admin', true), ('project_admin', true), ('member', true), ('viewer', true);

-- source is '' for what a person granted, else the provider of logins whose groups say so.
-- expires_at 0: never.
create table grants (
    id           text primary key check (id <> ''),
    subject_kind text   not null check (subject_kind in ('user', 'department')),
    subject_id   text   not null check (subject_id <> ''),
    role         text   not null references roles (name),
    scope_kind   text   not null check (scope_kind in ('platform', 'app', 'project', 'user', 'department')),
    scope_id     text   not null,
    source       text   not null,
    created_by   text   not null,
    created_at   bigint not null,
    expires_at   bigint not null check (expires_at = 0 or expires_at > created_at),
    check ((scope_kind = 'platform') = (scope_id = '')),
    unique (subject_kind, subject_id, role, scope_kind, scope_id, source)
);

create index grants_subject on grants (subject_kind, subject_id);

-- Links that work once and let their holder choose a password: an invitation, a reset, or
-- the set-up of the server, which makes its first administrator and so names no user. Only
-- sums of them are kept.
create table account_links (
    link_hash  text primary key,
    kind       text   not null check (kind in ('setup', 'invite', 'reset')),
    user_id    text   references users (id),
    created_by text   not null,
    created_at bigint not null,
    expires_at bigint not null check (expires_at > created_at),
    check ((kind = 'setup') = (user_id is null))
);

create index account_links_user on account_links (user_id);
