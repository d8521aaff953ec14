-- Stores were made with three forms of 0090, which differ in what PostgreSQL checks.
-- only: postgres
alter table turn_queue drop constraint if exists turn_queue_check3, drop constraint if exists turn_queue_legal, drop constraint if exists turn_queue_lease,
    add constraint turn_queue_lease check ((lease_token <> '') = (state = 'leased') and (head or state <> 'leased'));
