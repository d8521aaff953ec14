-- adds only: servers of the version before go on with it
-- Logins at a provider: which provider proved the user of a login, and in which of its
-- sessions; '': none did.
alter table web_sessions add column issuer text not null default '';
alter table web_sessions add column idp_sid text not null default '';

create index web_sessions_issuer on web_sessions (issuer, idp_sid) where issuer <> '';

-- '' for members that a person added, else the provider whose groups say so.
alter table department_members add column source text not null default '';

-- Sums of proofs from elsewhere that work once: they are kept until they would have expired.
create table spent_proofs (
    proof_hash text primary key,
    expires_at bigint not null
);

create index spent_proofs_expiry on spent_proofs (expires_at);
