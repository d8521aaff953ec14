-- git: commit, branch and origin that a client says a thread works at, as JSON; '' is nothing.
alter table threads add column git text not null default '';
