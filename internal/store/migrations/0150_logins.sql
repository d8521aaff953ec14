-- Logins of browsers are listed, revoked and proven by a second secret; tokens have
-- a scope. parent is the token or the login that a row was made with: it ends with
-- its parent. A login from before has no second secret, so its browser logs in once
-- more; a token from before keeps what it could do: everything, for ever.
delete from web_sessions;
alter table web_sessions add column id text not null default '';
alter table web_sessions add column proof_hash text not null default '';
alter table web_sessions add column scope text not null default 'read' check (scope in ('read', 'act', 'admin'));
alter table web_sessions add column parent text not null default '';
alter table web_sessions add column ends_at bigint not null default 0;
create unique index web_sessions_id on web_sessions (id);
create index web_sessions_parent on web_sessions (parent) where parent <> '';

alter table api_tokens add column scope text not null default 'admin' check (scope in ('read', 'act', 'admin'));
alter table api_tokens add column parent text not null default '';
create index api_tokens_parent on api_tokens (parent) where parent <> '';
