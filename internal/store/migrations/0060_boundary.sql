-- What was handed over when a receiver crossed the continuation boundary, for an
-- operator to recover: here if it is small, otherwise in the artifact that
-- boundary_envelope_ref names. All of it is written with the close, or nothing.
alter table delivery_batches add column boundary_envelope text not null default '' check (
    case when boundary_state = 'not_crossed' then
        close_reason <> 'handoff_recorded' and boundary_crossed_at = 0 and boundary_attempt_id = '' and boundary_generation = 0
        and boundary_revision = 0 and boundary_envelope_ref = '' and boundary_envelope = '' and boundary_envelope_bytes = 0
        and boundary_retention_until = 0 and boundary_pin_until = 0
    else
        close_reason = 'handoff_recorded' and boundary_crossed_at <> 0 and boundary_attempt_id <> '' and boundary_generation > 0
        and boundary_revision > 0 and (boundary_envelope_ref <> '' or boundary_envelope <> '') and boundary_envelope_bytes > 0
        and boundary_retention_until >= closed_at and boundary_retention_until >= boundary_pin_until
    end);
