-- adds only: servers of the version before go on with it
-- Programs that wait until a person confirms their login with a code. token_hash is the sum
-- of the API token that the program made and that the confirmation makes valid.
create table device_logins (
    code_hash  text primary key,
    token_hash text   not null unique,
    name       text   not null,
    scope      text   not null check (scope in ('read', 'act', 'admin')),
    address    text   not null,
    created_at bigint not null,
    expires_at bigint not null check (expires_at > created_at)
);

create index device_logins_expiry on device_logins (expires_at);
create index device_logins_address on device_logins (address);
