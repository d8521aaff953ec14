-- A thread's rows are numbered among its open ones, so that a row which is done
-- stands in one index only.
drop index turn_queue_thread;
drop index turn_queue_open;
create unique index turn_queue_open on turn_queue (thread_id, seq) where state <> 'done';
-- Leases are counted by user. Dead entries of one user fold into few, where those
-- of ever later times would each have to be passed over.
drop index turn_queue_leased;
create index turn_queue_leased on turn_queue (user_id) where state = 'leased';
-- PostgreSQL takes up each check anew in every statement that writes; one costs it
-- half of what seven do.
-- only: postgres
alter table turn_queue drop constraint turn_queue_kind_check, drop constraint turn_queue_state_check, drop constraint turn_queue_attempt_check,
    drop constraint turn_queue_check, drop constraint turn_queue_check1, drop constraint turn_queue_check2, drop constraint turn_queue_check3,
    add constraint turn_queue_legal check (
        case state
            when 'ready' then lease_token = '' and not waiting and done_at = 0
            when 'leased' then lease_token <> '' and head and done_at = 0
            when 'parked' then lease_token = '' and not waiting and done_at = 0
            when 'done' then lease_token = '' and not waiting and done_at <> 0
            else false
        end and kind in ('turn', 'sync', 'stop', 'remove') and attempt >= 0);
