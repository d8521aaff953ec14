-- Who owns things: every thread, turn, job and file names an app, a project and
-- a user, and the default ones exist from the start, so that one user and many
-- take the same path.
create table apps (
    id         text primary key,
    name       text   not null unique check (name <> ''),
    created_at bigint not null
);

create table users (
    id         text primary key,
    login      text   not null unique check (login <> ''),
    name       text   not null,
    state      text   not null check (state in ('active', 'disabled')),
    created_at bigint not null
);

create table projects (
    id         text primary key,
    app_id     text   not null references apps (id),
    name       text   not null check (name <> ''),
    created_at bigint not null,
    unique (app_id, name)
);

insert into apps (id, name, created_at) values ('00000000-0000-7000-8000-000000000001', 'default', 0);
insert into users (id, login, name, state, created_at) values ('00000000-0000-7000-8000-000000000003', 'local', 'Local user', 'active', 0);
insert into projects (id, app_id, name, created_at) values ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', 'default', 0);
